// Package space says which bucket file is emptied next, so that a table keeps to its space on
// SSD, and how much room there is.
package space
