// Package details measures the index of a table: how many rows the buckets have, and how often the
// filters are wrong.
package details
