// Package restore brings the rows that a snapshot has in delta files back into the cache of a
// table on SSD.
//
//	delta files, newest first --> blocks of rows --> those that are the latest versions --> cache
//	(internal/checkpoint)                            rules: checkpoint.Saved, list.go
//
// Dirty comes first, and Open waits for it: any of the dirty rows may be newer than its bucket,
// so nothing could be pulled, scanned or saved before all are in the cache. Of the rows in
// several files, the newest version of each is wanted, and none whose bucket is newer still
// (list.go). Clean goes on beside Pulls: its rows only make the next pulls faster, because
// their buckets have them, too (clean.go). A table that is opened for reading only leaves
// the dirty rows in their files, and has Block put them into the cache as clean ones
// (internal/outside).
//
// The methods of Restorer are called before the table is open, or, as Clean does, they take
// the lock that keeps others from inserting rows.
package restore
