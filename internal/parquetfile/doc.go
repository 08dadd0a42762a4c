// Package parquetfile protects against damaged and malicious Parquet files. The library alone
// allocates as much memory as a page's header asks for, and loops forever on a page with fewer
// values than it announces. All columns are read through Values.
//
// The package itself decodes pages that the library decodes wrongly or not at all:
//
//   - run-length encoded booleans;
//   - delta encoded 32-bit integers as some writers store them;
//   - dictionary indices with further bytes after them;
//   - all pages of columns compressed with LZ4, or whose row groups use several codecs;
//   - byte stream split pages of types other than floats.
//
// Pages without values are skipped. Statistics that the library misreads are hidden from it;
// callers that open a file hide those of its footer with HideStatistics.
package parquetfile
