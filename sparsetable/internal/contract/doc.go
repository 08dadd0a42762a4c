// Package contract has what tables of every kind share with their callers: the working sets that
// Pull returns, modes, rules and sources of rows, snapshots, statistics and errors. Package
// sparsetable gives all of it its public names.
package contract

// The kinds of tables.
const (
	KindMemory = "memory" // all rows in memory
	KindSSD    = "ssd"    // rows on SSDs; those in use are in memory
)
