// Package checkpoint fixes, writes, keeps and reads the snapshots of a table on SSD.
//
//	                 Fix, Write, Drop, Upgraded lists
//	table  --------------------------------------------->  Store
//	       BeforeBucket(slot): before a bucket is written      |  delta files (internal/deltafile)
//	       Running().Save(refs): before pinned rows change     |  pages of the index, catalog
//	       <---------------------------------------------      v
//	       Table: no buckets, no releases; memory          devices
//
// A snapshot consists of the buckets in the index at one instant and the rows that were not in
// buckets then. Fix fixes that instant; the table goes on while Write writes what was fixed. The
// dirty rows are dumped into a delta file of the snapshot, except those that an earlier delta file
// has unchanged (list.go). If a row is about to change, or to move to a bucket, before it was
// dumped, the goroutine that changes it dumps it first (dump.go). Pages of the index that change
// before they are written are copied, within a budget (pages.go).
//
// The Store knows the table's delta files, and deletes a file when no snapshot refers to it and the
// next one will not (files.go). It reads the files when the table is opened; the table puts their
// rows into the cache.
package checkpoint
