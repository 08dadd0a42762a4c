// Package warmstart takes the values of an earlier model over into a new one, whose parameters may have
// other entries: a field, dense feature or tower that was added or removed, another embedding
// dimension, another format of values.
//
//	MatchAxes   which entries of a parameter were in the earlier one, by the names of the entries
//	Copy        the values of those
//	Converter   rows of an embedding table, with the state of their optimizer
//	CopyRows    all rows of a table
//
// What a run decides, such as whether optimizers keep their state, is its caller's.
package warmstart
