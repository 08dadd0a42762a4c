// Package arriving lets a run train while the files of its table are still on their way.
//
// A run that goes on from a snapshot of snapshots.remote, or starts from a model of output.remote,
// does not wait for the buckets of its table: what it reads is fetched when it is read, and the
// rest in the background. Until all has arrived, each of the table's directories has a record of
// what lacks (sparsetable.ArrivingName), by which another process goes on with that. Before the model
// is committed, and before a snapshot is uploaded, everything is there and verified. `aibox
// restore` does the same with a model, without a run, and who only reads a model meanwhile
// reads what lacks from the remote directory (package transfer).
//
// The table of a run that starts from a model has links to that model's files, so it has
// a record of its own of the same files, and both are kept by the run.
package arriving
