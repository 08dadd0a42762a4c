// Package transfer makes new tables from snapshots of other tables, and moves snapshots to other
// machines as files (clone.go, files.go). Package sparsetable documents its functions.
package transfer
