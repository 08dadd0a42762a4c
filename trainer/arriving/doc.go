// Package arriving lets a run train while the files of its table are still on their way.
//
// A run that resumes from a snapshot of snapshots.remote, or starts from a model of output.remote,
// does not wait for the buckets of its table: a bucket is fetched when it is read, and the rest in
// the background. Until all have arrived, each of the table's directories has a record of what is
// missing (sparsetable.ArrivingName), from which another process can continue. Before the model is
// committed, and before a snapshot is uploaded, everything has arrived and is verified. `aibox
// restore` does the same with a model, without a run. Meanwhile, whoever only reads a model reads
// what is missing from the remote directory (package transfer).
//
// The table of a run that starts from a model has links to that model's files. It has a record of
// its own for these files, and the run maintains both records.
package arriving
