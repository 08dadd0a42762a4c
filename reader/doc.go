// Package reader turns click logs into passes of mini-batches (stage RE of
// AIBox §3).
//
//	URIs --source--> bytes --workers--> blocks --rows--> drafts --workers--> mini-batches --builder--> passes
//	                 ranges    in parallel,     in order,           in parallel         in order,
//	                           into columns     one goroutine                           one goroutine
//
// # Order
//
// The input is the list of files that the URIs expand to, in order. It is cut into units: byte
// ranges of uncompressed files, runs of lines of a decompressed file, row groups of Parquet.
// Workers decode units in any order into blocks (columns of decoded rows). Type rows takes the
// blocks in the order of the input, samples, limits and counts. The window shuffles, if asked to.
// The builder assigns the examples to drafts of mini-batches. Workers turn drafts into
// mini-batches: they copy the examples and number the keys within a mini-batch. The builder then
// numbers the unique keys of the mini-batches within their pass, helped by idle workers. The
// examples, the mini-batches, the counts and the line numbers of bad rows depend neither on how the
// input is cut nor on the number of workers. There are two exceptions: Pass.Bytes and
// Counts.BytesRead, which only show progress, advance by whole units; and if MaxBadFraction stops
// reading early, the row at which it does so depends on ChunkBytes.
//
// # Rows
//
// Lines end with \n or \r\n; the last one may end with the file. Empty lines are
// skipped, and so is a UTF-8 byte order mark. A line may have at most MaxLineBytes
// bytes; a longer one is a bad row, of which only the beginning is held in memory.
//
//   - Criteo: 40 cells between tabs, no quoting. A file without labels has 39; its first line tells.
//   - CSV, TSV: with QuotingRFC4180, the default of CSV, cells are as in RFC 4180,
//     except that a quoted cell must end on its line: if quotes could hold line
//     ends, a file could not be cut into ranges. A row that breaks this rule is bad.
//     With QuotingNone, the default of TSV, a quote is an ordinary character. With a
//     header, columns are found by name and may be in another order in each file,
//     and those that the schema lacks are ignored.
//   - LibSVM, LibFFM: see tokens.go of package examples. Labels 1, 0 and -1 (which is 0). Lines of only a
//     comment are skipped.
//   - Parquet: columns are found by name. Lists are bags. Decimals and float16 are
//     numbers; UUIDs are their text; dates, times and timestamps are the integers that are
//     stored, so files in which they count different units are refused;
//     a column of null type is missing in every row; int96, structs, maps
//     and lists of lists are not supported, which is an error only if the schema
//     uses such a column.
//
// In CSV, TSV and Parquet, a column that the schema names and the file does not have
// can come from the name of a directory, such as dt=2026-11-20/; see partition.go there.
//
// # Missing values
//
// A cell is missing if it is empty, one of Schema.NullValues (in TSV \N, which Hive writes) or null
// in Parquet. A missing label makes the row bad, or is NaN with KeepUnlabelled. A missing weight is
// 1. A missing dense cell yields Column.Missing, and 1 for the column's indicator if it has one. A
// missing sparse cell yields an empty bag; a missing value among several is ignored. A missing cell
// of a group or pass-through column is empty. NaN is not a missing value in any format: in a sparse
// column it is the value NaN. (Pandas writes missing numbers to Parquet as nulls.)
//
// # Features
//
// An example has, per sparse field, a bag of keys (see Key) with weights; an
// empty cell is an empty bag. Dense features are numbers after their transforms; a
// missing one is Column.Missing, to which transforms do not apply, so that the
// default, 0, is the mean of a standardized column. NaN and infinities are faults.
// Spaces around numbers are ignored; in sparse cells they are part of the value.
//
// # Bad rows
//
// A row that cannot be decoded is counted by its reason, written to the quarantine and left out. A
// *BadRowsError ends reading once MaxBadRows or MaxBadFraction is exceeded. At the end of the
// input, the share of bad rows is exact. Before the end, reading stops only if the share would
// exceed the limit even if all remaining rows were good; package faults explains the upper bound on
// the remaining rows.
//
// # Losses
//
// If a compressed file is damaged, everything after the point where the damage is detected is lost.
// In gzip, a flipped bit may be detected only by the checksum at the end of its member; lines
// before that which look like rows count as rows. In a Parquet row group, all rows from the damaged
// page on are lost. If a compressed file is truncated, or if the last line of a text has no line
// end and holds only the first cells of a row, an unknown part of the file is missing. A file whose
// header (in Parquet, footer) is damaged or missing is lost entirely. Each Loss is measured in
// stored bytes as a share of the whole input, logged, and written to the quarantine. A
// *LostDataError ends reading as soon as MaxLostFraction is exceeded. I/O errors are not losses:
// they end reading.
//
// # Cursors
//
// Each pass has a Cursor: a place between two examples at which a later reading of the
// same input can start (Options.Start), to deliver exactly what would have followed.
//
//	units     |      0       |      1       |      2       |
//	windows   |   0   |   1   |   2   |   3   |   4   |   5
//	passes    |   0    |   1    |   2    |
//	cursor                   |  Skip  |  | Taken, in an order of their own
//	                         Position
//
// All state that depends on earlier rows is in type rows, which handles them sequentially. When it
// enters a unit, it records its state (Position), and then counts the examples that it emits. A
// reading that starts at a cursor restores the state at the beginning of the unit, decodes the
// unit, skips Skip examples and, if examples are shuffled, refills the window, the first Taken
// examples of which are in earlier passes. The random order is a hash of the window's number, and
// so the same as before.
//
// Nothing before the unit is read again, neither rows nor headers nor footers, with one exception:
// a compressed file is decompressed from its beginning and cut into the same units, and those
// before the cursor are dropped without being decoded. A cursor is therefore valid only if units
// are cut in the same way: with the same ChunkBytes, and by the same version of this package.
//
// # Parts
//
// This package determines the order in which rows are read and what happens to examples: it has the
// files, units, workers, windows, mini-batches and passes. Other packages determine what is read:
//
//   - rowschema says what the rows of a file mean; its types have names here, too.
//   - examples decodes rows into columns of examples.
//   - faults says what can be wrong with an input, counts it, and applies the limits.
//   - Five know nothing of schemas and examples: rowtext cuts text into lines and cells,
//     parquetcolumn reads and writes columns of Parquet, hashes makes keys, numbering numbers
//     them, and rowwriter writes rows.
//
// # Memory
//
// At most 2*Threads+1 units are being decoded or waiting to be read, each of at most about
// 6*ChunkBytes plus one line when decoded (1.5*ChunkBytes for Criteo). A Parquet row group is
// decoded piecewise within the same bound, plus the pages and dictionaries of its columns.
// Compressed files additionally need at most
//
//	min(Threads, 8)*(AheadChunks+2) + 2*Threads+2
//
// chunks of text, each of ChunkBytes or one longer line (42 chunks, 168 MiB, with 2
// threads and the defaults; 162 chunks, 648 MiB, with 8), and the decompressors'
// own windows. The shuffle window, one pass and the Threads+1 mini-batches after it come
// on top of this.
//
// # Concurrency
//
// Open starts one planner and Threads workers, which decode units and make mini-batches. While Next
// waits for a mini-batch, it makes mini-batches too, and idle workers help it to number keys (see
// package numbering). The planner starts a decompressor for each compressed file, a few files
// before its turn, at most min(Threads, 8) at a time. Close stops all of them, even in the middle
// of the input. A Reader is for one goroutine; Counts may be called from any.
package reader
