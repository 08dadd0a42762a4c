// Package verify verifies tables: the snapshot files of a table on SSD (files.go), and one open
// snapshot of it (table.go, buckets.go). A Report has the result.
package verify
