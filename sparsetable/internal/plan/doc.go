// Package plan divides the memory budget of a table on SSD among its buffers, its index and its
// cache (plan.go), determines the sizes of buckets and filters (shape.go), and tells whether a
// budget is enough (fits.go). It only computes; it allocates nothing.
package plan
