// Package parquetfile protects against damaged and forged Parquet files: by itself, the library
// takes as much memory as a page's header asks for, and never gives up on a page that holds fewer
// values than it announces. Values is the one way in which columns are read.
//
// Pages that the library decodes wrongly or not at all are decoded here: booleans in runs,
// differences of 32-bit integers as some writers store them, places in a dictionary with more bytes
// after them, and all pages of columns that are compressed by LZ4 or of which row groups are
// compressed in several ways, and those of other types than floats whose bytes are in streams.
// Pages without values are left out. Statistics that the library misreads are hidden from it: users
// that open a file hide those of its footer by HideStatistics.
package parquetfile
