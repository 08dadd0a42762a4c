// Package rowfile writes and reads rows of an embedding table as Parquet files, bit for
// bit, so that other tables and programs can use them.
//
//	column      type                 of a row
//	key         uint64
//	values      list of float        the learned embedding
//	state       list of float        state of the row's optimizer; may be empty
//	show        float                decayed impressions
//	click       float                decayed clicks
//	last_seen   uint32               day on which it was last trained
//	count       uint32               how often it occurred in training
//
// Values of 16 bits are written as the float32 that they stand for, and reading them gives
// the same 16 bits again.
//
// The entry "aibox.row_layout" of the file's metadata has the lengths of the lists. A
// Writer writes every column. A Reader accepts any file that has the columns key and
// values, whichever program wrote it: the other columns may be missing (then a count is 1,
// and the rest is 0 or empty), and further columns are ignored. last_seen and count may
// also be int32, if no number is negative.
//
// A Writer holds one row group in memory, and a Reader one page of each column. Each of
// them is used by one goroutine.
package rowfile
