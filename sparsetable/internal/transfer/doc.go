// Package transfer makes tables of snapshots of other ones, and takes snapshots to other
// machines as files (clone.go, files.go). Package sparsetable says what its functions do.
package transfer
