// Package remotesnapshots is snapshots.remote as a run uses it: a remote directory with the newest
// snapshots of the run, from which another machine goes on with it.
//
// They are uploaded in the background (package mirror), and so are, between two of them, the rows
// that snapshots.priority chooses (package prioritysaves). What fails there delays it and never the
// training, unless files of the table cannot be read. When the model is committed, and published if
// it is to be, the snapshots are removed.
package remotesnapshots
