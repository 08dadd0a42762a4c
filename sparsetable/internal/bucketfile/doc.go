// Package bucketfile keeps the buckets of a sparse table, the rows of one slot
// each, in large files on one or several devices.
//
// # Why
//
// A slot's rows are rewritten whole, whenever they leave the cache, and read
// whole, in one device read. Buckets are therefore appended: many small random
// writes become few large sequential ones, and a file never changes once it is
// written, so that snapshots share it by holding it. What a rewrite supersedes
// is dead space; a file without live buckets and holders is deleted, one with
// few live buckets is emptied by its owner (CompactionCandidates, ScanFile).
//
// # Format
//
// A file of table T with number F is named "T-F.bucket" (hexadecimal). All
// numbers are little-endian. The file is a sequence of records, each starting
// at a multiple of the unit:
//
//	+--------+----------+----------+--------+----------+------
//	| header | bucket   | bucket   | filler | bucket   | …
//	+--------+----------+----------+--------+----------+------
//	0        4096
//
// Fillers pad each write to 4096 bytes, the block of file systems, and stand
// for buckets that were begun and not finished.
//
//	bucket
//	 0      4      8      12     16     20    22  23  24          32
//	+------+------+------+------+------+-----+---+---+-----------+---------+------+
//	|magic |crc   |slot  |rows  |bytes |words|fmt| 0 | seq       | entries | 0 …  |
//	+------+------+------+------+------+-----+---+---+-----------+---------+------+
//	                             of the  of a                     rows times: key
//	                             entries row                      (8), row (4·words)
//
//	file header                                              filler
//	 0      4      8        16     20     24      28          0      4      8
//	+------+------+--------+------+------+-------+----+      +------+------+-------+
//	|magic |crc   |table   |file  |unit  |words  |fmt |      |magic |crc   |units  |
//	+------+------+--------+------+------+-------+----+      +------+------+-------+
//
// crc is CRC-32C over everything but itself and the padding, starting from a
// value derived from table, file and unit offset: a bucket that the device
// returns from another place, or of an older file in the same blocks, does not
// pass. fmt names how a row's words are to be read; so far 0, float32.
//
// A Location, 8 bytes, is all that an index needs to keep:
//
//	 63         40 39                 12 11         0
//	+-------------+---------------------+------------+
//	| file number | offset in units     | units      |
//	+-------------+---------------------+------------+
//
// # Life of a bucket
//
//	Begin ─ Put… ─ Commit     encoded in place in an append buffer; has a Location
//	writer                    one goroutine per directory writes full buffers
//	Flush                     everything committed so far is durable
//	Submit ─ Wait ─ Finish    read from the buffer while there, then the device
//	Release                   superseded: its bytes are dead
//	Hold, Unhold              a snapshot keeps the files of all live buckets
//
// Nothing is promised before Flush returns; everything that was committed
// before is then durable, and stays readable as long as it is neither released
// nor its file held by no one. Open takes the State that a snapshot recorded,
// and deletes every other bucket file of the table.
//
// # Errors
//
// A write that fails stays in its buffer, is readable there, and is tried again
// with every later Begin and Flush of its directory; both return the error as
// long as it lasts. A failed sync is final for its directory: what reached the
// device is unknown, so appends and flushes fail until the Set is opened again
// from the last snapshot. An append that would exceed the directory's budget or
// its free space returns ErrNoSpace before anything is written. Corruption is a
// CorruptionError with file, offset and slot.
//
// # Concurrency
//
// All methods may be called concurrently. directory.mu guards a directory's
// append buffers, Set.mu the files with their counts; who needs both takes
// directory.mu first. Neither is held during I/O, except that a request which
// is still in an append buffer is copied under directory.mu. An Appender and a
// Queue belong to one goroutine at a time.
package bucketfile
