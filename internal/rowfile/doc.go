// Package rowfile keeps rows of an embedding table in Parquet files, bit for
// bit, to take them to other tables and programs.
//
//	column      type                 of a row
//	key         uint64
//	values      list of float        the learned embedding
//	state       list of float        the row optimizer's; may be empty
//	show        float                decayed impressions
//	click       float                decayed clicks
//	last_seen   uint32               day on which it was last trained
//	count       uint32               examples that referenced it
//
// Values of 16 bits are written as the float32 that they stand for, and become
// what they were when they are read.
//
// The file's metadata have the lengths of the lists, "aibox.row_layout". Writers
// write every column; readers want key and values and take any file that has
// them, whichever program wrote it: the other columns may be missing (a count is
// then 1, the rest 0 or empty), and others are not looked at. last_seen and count
// may be int32, too, of which none is negative.
//
// Both hold one row group, or a page of each column, in memory. They belong to
// one goroutine.
package rowfile
