// Package lost tells which rows of a snapshot are lost with missing files, and inserts those that
// can be had from elsewhere (refill.go).
package lost
