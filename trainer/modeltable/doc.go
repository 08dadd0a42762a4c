// Package modeltable finds the table of a committed model for those that read its rows without the
// network: diffs, exports, look-ups, checks.
//
//	Find      a model directory, or DIR@N -> Table: the model, its job and schema, and how to
//	          open its table
//	Read      lets files that have not all arrived from a remote directory be fetched on reading
//	Settled   the rows as the model uses them after its last step, with weight decay applied
//	Close     lets the model's files be deleted
//
// In between, the caller opens and closes the table with Options, through modeldir.Model.OpenTable
// or, to hold it longer, after HoldTable.
//
// SavedJob and RowDecay read from a model directory the job and how rows decay. They are also for
// those that load the whole model, or start from it.
package modeltable
