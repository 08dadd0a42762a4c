// Package mirror keeps the newest snapshot of a run in a remote directory, in the background.
//
// There is no queue: while a snapshot is uploaded, only the newest other one waits, and replaces an
// older one that waits. A failed upload is tried again at increasing intervals, or replaced by the
// next snapshot if that comes first. Nothing here makes the run fail.
package mirror
