// Package runstate has what a run is in the middle of: the State that changes while it trains, and
// the Record, in RESUME.json and in the snapshots of snapshots.remote, with which another process
// goes on with the run.
//
// All that the rest of training depends on belongs into the State, the tensors of the engine's
// state, and the snapshot of the table that the Record names. Package trainer saves them and reads
// them back.
package runstate
