// Package space chooses the bucket file to be emptied next, so that a table keeps to its space on
// SSD, and tells how much room there is.
package space
