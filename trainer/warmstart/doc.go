// Package warmstart copies the values of an earlier model into a new one. The new model's
// parameters may have other entries because a field, dense feature or tower was added or removed,
// or because the embedding dimension or the format of values has changed.
//
//	MatchAxes   which entries of a parameter the earlier one had, by the names of the entries
//	Copy        the values of those
//	Converter   rows of an embedding table, with the state of their optimizer
//	CopyRows    all rows of a table
//
// The caller makes the decisions of a run, such as whether optimizers keep their state.
package warmstart
