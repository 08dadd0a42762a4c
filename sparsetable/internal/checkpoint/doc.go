// Package checkpoint fixes, writes, keeps and reads the snapshots of a table on SSD.
//
//	                 Fix, Write, Drop, Upgraded lists
//	table  --------------------------------------------->  Store
//	       BeforeBucket(slot): before a bucket is written      |  delta files (internal/deltafile)
//	       Running().Save(refs): before pinned rows change     |  pages of the index, catalog
//	       <---------------------------------------------      v
//	       Table: no buckets, no releases; memory          devices
//
// A snapshot is the buckets as the index has them at one instant, and the rows that were
// not in buckets then. Fix fixes that instant; work goes on while Write writes what was
// fixed. Of the rows, those that are dirty are dumped into a delta file of the snapshot,
// unless an earlier delta file has them as they are (list.go). A row that is about to
// change, or to leave for a bucket, before it was dumped, is dumped by whoever changes it
// (dump.go). The pages of the index are copied when they change before they are written,
// within a budget (pages.go).
//
// The Store knows which delta files the table has, and deletes a file when neither a
// snapshot refers to it nor the next one may (files.go). It reads the files for whoever
// opens the table; how their rows come into the cache is the table's matter.
package checkpoint
