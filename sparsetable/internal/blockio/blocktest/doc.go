// Package blocktest holds a blockio.Device in memory for tests: it fails the
// n-th operation, tears writes between units, returns too little, flips bits,
// runs full, and loses what was not synced when it crashes.
//
// Files have two versions: what a process sees, and what a crash leaves. Write
// changes the first, Sync copies it to the second, file by file; creations,
// renames and removals reach the second by SyncDir. Crash returns a new Device
// with the second version, to which chance (seeded) adds some of what was not
// synced: single units of files, in any combination, and a prefix of the
// directory's changes. That is what journaling file systems over a volatile
// disk cache do.
//
// Reads that are submitted end in a random order (seeded), on a goroutine that
// lives as long as there are any.
//
// Limited makes a slow device of any: so many reads a second.
package blocktest
