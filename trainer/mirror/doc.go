// Package mirror keeps the newest snapshot of a run in a remote directory, in the background.
//
// There is no queue: while a snapshot is uploaded, the newest one waits, and takes the place
// of one that waits already. An upload that fails is tried again, later and later, or with
// the next snapshot if that comes first. Nothing here fails the run.
package mirror
