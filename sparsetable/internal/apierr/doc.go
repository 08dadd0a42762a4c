// Package apierr converts errors of the parts of a table on SSD into those that package sparsetable
// documents.
package apierr
