// Package blocktest provides a blockio.Device in memory for tests. It can fail the n-th operation,
// tear writes between units, return short reads, flip bits and run out of space, and a crash loses
// what was not synced.
//
// Files have two versions: what a process sees, and what a crash leaves. Write
// changes the first, Sync copies it to the second, file by file; creations, renames and removals
// reach the second by SyncDir. Crash returns a new Device with the second version plus a seeded
// random part of what was not synced: single units of files, in any combination, and a prefix of
// the directory's changes. That is how journaling file systems over a volatile disk cache behave.
//
// Submitted reads complete in a random order (seeded), on a goroutine that lives as long as there
// are any.
//
// Limited wraps any device and limits its reads per second.
package blocktest
