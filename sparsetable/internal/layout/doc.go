// Package layout has the shape of a table's rows: where values, optimizer state and
// statistics lie in them, how values are encoded, and the bytes that rows have in files.
package layout
