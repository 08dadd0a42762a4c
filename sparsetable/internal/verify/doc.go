// Package verify verifies tables: the files of the snapshots of a table on SSD (files.go),
// and one snapshot of it that is open (table.go, buckets.go). A Report has what was found.
package verify
