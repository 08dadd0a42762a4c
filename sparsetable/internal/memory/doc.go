// Package memory is the kind of table that has all rows in memory: an index of references
// (index.go), the slabs that have the rows (slabs.go), and snapshots, each one file
// (file.go). The documentation of package sparsetable draws them, and its interface Table
// says what the methods do.
package memory
