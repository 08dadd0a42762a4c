// Package runstate has the state of an unfinished run: the State, which changes during training,
// and the Record, in RESUME.json and in the snapshots of snapshots.remote, from which another
// process resumes the run.
//
// Everything that the rest of training depends on belongs in the State, in the tensors of the
// engine's state, or in the snapshot of the table that the Record names. Package trainer saves them
// and reads them back.
package runstate
