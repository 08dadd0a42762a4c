// Package reader turns click logs into passes of mini-batches (stage RE of
// AIBox §3).
//
//	URIs --source--> bytes --workers--> blocks --rows--> examples --builder--> passes
//	                 ranges             columns, in parallel   in order, one goroutine
//
// # Order
//
// The input is the list of files that the URIs expand to, in order. It is cut
// into units: byte ranges of uncompressed files, runs of lines of a decompressed
// file, row groups of Parquet. Workers decode units in any order into blocks
// (columns of decoded rows); rows takes the blocks in the order of the input,
// samples, limits and counts; the window shuffles, if asked to; the builder
// numbers the keys and makes mini-batches. Nothing that depends on the cutting or
// on the number of workers reaches the examples, the mini-batches, the counts or
// the line numbers of bad rows. Only Pass.Bytes and Counts.BytesRead, which are
// there to show progress, move in steps of whole units; and in an input that ends
// early past MaxBadFraction, ChunkBytes shifts the row at which it does.
//
// # Rows
//
// Lines end with \n or \r\n, the last one also with the end of the file. Empty
// lines are skipped, and so is a UTF-8 byte order mark. A line holds at most
// MaxLineBytes; the rest of a longer one is skipped without being held.
//
//   - Criteo: 40 cells between tabs, no quoting. Without label: 39.
//   - CSV, TSV: with Quoting, which CSV has, cells are as in RFC 4180, except that
//     a quoted cell must end on its line: with a line end inside quotes the file
//     could not be cut into ranges, so that is a bad row. Without it, as TSV is, a
//     quote is a character like others. With a header, columns go by name, may
//     stand in another order in each file, and those that the schema lacks are
//     ignored.
//   - LibSVM, LibFFM: see tokens. Labels 1, 0 and -1 (which is 0). Lines of only a
//     comment are skipped.
//   - Parquet: columns by name. Lists are bags. Decimals and float16 are numbers,
//     a column of null type is missing everywhere; int96, structs, maps and lists
//     of lists matter only where they are used. See parquetFile.
//
// In CSV, TSV and Parquet, directories such as dt=2026-11-20/ give a column that
// the schema names and the file does not have; see partitionsOf.
//
// # Missing values
//
// A cell is missing where it is empty, one of Schema.NullValues (in TSV \N, which
// Hive writes) or null in Parquet: a missing label is a bad row, or NaN with
// KeepUnlabelled; a missing weight is 1; a dense column yields Column.Missing; a
// sparse one an empty bag, and a missing value among several counts for nothing;
// a group and a column that is passed through are empty.
//
// # Features
//
// An example has, per sparse field, a bag of keys (see Key) with weights; an
// empty cell is an empty bag. Dense features are numbers under transforms; a
// missing one is Column.Missing, to which transforms do not apply, so that by
// default it is the mean of a standardized column. NaN and infinities are faults.
// Spaces around numbers are ignored; in sparse cells they count.
//
// # Bad rows
//
// A row that cannot be decoded is counted by Reason, written to the quarantine
// and left out; a *BadRowsError ends reading past MaxBadRows or MaxBadFraction.
// The share is judged exactly at the end of the input. While reading, it ends only
// what no good rest could mend: pace.go says how many rows the rest is taken to
// hold at most.
//
// # Losses
//
// Of a compressed file that is damaged, the rest is lost; of a row group of
// Parquet, what comes from the damaged page on. A compressed file that is cut, and a
// text whose last line has no end and holds only the first cells of a row, lack
// an unknown part. Each Loss is weighed in stored bytes against the whole input, is
// logged and written to the quarantine, and a *LostDataError ends reading as soon as
// MaxLostFraction is exceeded. I/O errors are no losses: they end reading.
//
// # Memory
//
// At most 2*Threads+1 units are on their way, each at most about 4*ChunkBytes
// plus one line when decoded (1.5*ChunkBytes for Criteo); a row group of Parquet
// is decoded piecewise within the same bound, besides the pages of its columns. Of
// compressed files there are in addition at most
//
//	min(Threads, 8)*(AheadChunks+2) + 2*Threads+2
//
// chunks of text, each of ChunkBytes or one longer line (42 chunks, 168 MiB, with 2
// threads and the defaults; 162 chunks, 648 MiB, with 8), and the decompressors'
// own windows. To this add the shuffle window and one pass.
//
// # Concurrency
//
// Open starts one planner and Threads workers; the planner starts a decompressor
// for each compressed file, from a few files before its turn on, at most
// min(Threads, 8) at a time. All of them end with Close, also when it is called
// early. A Reader is for one goroutine; Counts is for all.
package reader
