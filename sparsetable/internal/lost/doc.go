// Package lost tells which rows of a snapshot are lost with missing files, and inserts those that
// are found elsewhere (refill.go).
package lost
