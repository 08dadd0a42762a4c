// Package remotesnapshots implements snapshots.remote: a remote directory with the newest snapshots
// of a run, from which another machine can resume it.
//
// The snapshots are uploaded in the background (package mirror). So are, between two of them, the
// rows that snapshots.priority chooses (package prioritysaves). Failures only delay uploads and
// never affect training, unless files of the table cannot be read. When the model is committed and,
// if the job asks for that, published, the snapshots are removed.
package remotesnapshots
