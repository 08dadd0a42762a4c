// Package lost knows which rows of a snapshot are lost with files that are missing, and
// inserts those of them that are to be had elsewhere (refill.go).
package lost
