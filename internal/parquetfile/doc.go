// Package parquetfile protects against damaged and forged Parquet files: by itself, the
// library takes as much memory as a page's header asks for, and never gives up on
// LZ4 data that are damaged, or a page that holds fewer values than it announces. Values
// is the one way in which columns are read.
//
// Pages whose values the library decodes wrongly are decoded here: booleans in runs, and differences
// of 32-bit integers as some writers store them.
package parquetfile
