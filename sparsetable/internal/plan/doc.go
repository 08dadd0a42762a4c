// Package plan divides the memory budget of a table on SSD among its buffers, its index and
// its cache (plan.go), determines how large buckets and filters are (shape.go), and says
// whether a budget is enough (fits.go). It computes and holds nothing.
package plan
