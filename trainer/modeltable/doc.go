// Package modeltable finds the table of a model that was trained and committed, for those who want
// to read its rows without the network: diffs, exports, look-ups, checks.
//
//	Find       a model directory, or DIR@N  -> Table: the model, its job and schema, and how its table is opened
//	Read       says that files that have not all arrived from a remote directory are fetched as they are read
//	Settled    the rows as the model uses them after its last step: what weight decay has left of them
//	Close      lets the model's files be deleted
//
// The table is opened and closed in between by the caller, with Options, through
// modeldir.Model.OpenTable or, where it is held for longer, after HoldTable.
//
// SavedJob and RowDecay read what a model directory says of the job and of the decay of rows. They
// are also for those who load the whole model, or start from it.
package modeltable
