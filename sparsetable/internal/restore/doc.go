// Package restore puts the rows of a snapshot's delta files back into the cache of a table on SSD.
//
//	delta files, newest first --> blocks of rows --> only the latest version of each --> cache
//	(internal/checkpoint)                            rules: checkpoint.Saved, list.go
//
// Dirty runs first, and Open waits for it: any dirty row may be newer than its bucket, so nothing
// can be pulled, scanned or saved before all of them are in the cache. If several files have a row,
// the newest version counts, unless the row's bucket is newer still (list.go). Clean runs during
// Pulls: its rows are also in their buckets and only make the next pulls faster (clean.go). A table
// that is opened for reading only leaves the dirty rows in their files, and calls Block to put them
// into the cache as clean rows (internal/outside).
//
// The methods of Restorer are called before the table is open, or take the lock that excludes other
// inserters, as Clean does.
package restore
