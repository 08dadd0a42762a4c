// Package apierr makes errors of the parts of a table on SSD the ones that callers of
// package sparsetable know.
package apierr
