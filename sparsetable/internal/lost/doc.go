// Package lost knows which rows of a snapshot are lost with files that are missing.
package lost
