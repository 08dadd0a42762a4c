// Package outside reads the rows of a snapshot that are outside of buckets: those that were dirty
// when the snapshot was fixed. Only a table that is opened for reading uses it. Such a table cannot
// write these rows to buckets, so they stay in the delta files and are read from there when they
// are pulled. The index (index.go) has the hash, place and checksum of each row, sorted by hash; it
// takes 16.3 to 16.6 bytes of memory a row. It is built from the delta files when the table is
// opened (build.go).
//
// The hash function is a bijection: only equal keys have equal hashes. So the index tells, without
// a read, whether a key is in the files.
package outside
