// Package bucketfile keeps the buckets of a sparse table, the rows of one slot
// each, in large files on one or several devices.
//
// # Why
//
// When rows of a slot leave the cache, the slot's bucket is rewritten as a whole, and a
// bucket is read as a whole, in one device read. Therefore buckets are appended to
// files: many small random writes become few large sequential ones. A file never
// changes once it is written, so that several snapshots can share it; each of them
// holds it, and is called its holder. A bucket that was rewritten elsewhere is dead
// space. A file without live buckets and without holders is deleted; the table empties
// files that have few live buckets (CompactionCandidates, ScanFile).
//
// # Format
//
// A file of table T with number F and incarnation I is named "T-F-I.bucket"
// (hexadecimal). Numbers are used again when their files are gone; incarnations are
// random, so no two files have the same name (numbers.go). Files of older versions have
// no incarnation and are named "T-F.bucket". All numbers are little-endian. The file is
// a sequence of records, each starting at a multiple of the unit:
//
//	+--------+----------+----------+--------+----------+------
//	| header | bucket   | bucket   | filler | bucket   | …
//	+--------+----------+----------+--------+----------+------
//	0        4096
//
// Fillers pad each write to a multiple of 4096 bytes, the usual block of file systems,
// and take the place of buckets that were begun and not finished. So a device's blocks
// may be larger than the unit: writes are whole blocks in any case, and reads are
// extended to whole blocks.
//
//	bucket
//	 0      4      8      12     16     20    22  23  24          32
//	+------+------+------+------+------+-----+---+---+-----------+---------+------+
//	|magic |crc   |slot  |rows  |bytes |words|fmt| 0 | seq       | entries | 0 …  |
//	+------+------+------+------+------+-----+---+---+-----------+---------+------+
//	                             of the  of a                     rows times: key
//	                             entries row                      (8), row (4·words)
//
//	file header
//	 0      4      8        16     20     24     28  29  32            40
//	+------+------+--------+------+------+------+---+---+-------------+
//	|magic |crc   |table   |file  |unit  |words |fmt| 0 | incarnation |
//	+------+------+--------+------+------+------+---+---+-------------+
//
//	filler
//	 0      4      8
//	+------+------+-------+
//	|magic |crc   |units  |
//	+------+------+-------+
//
// crc is CRC-32C over everything but itself and the padding, starting from a value
// derived from table, file, incarnation and unit offset. So a bucket that the device
// returns from another place, or from an older file in the same blocks, does not match
// its checksum. fmt says how a row's words are encoded: 0 stands for float32, 1 for
// float16 and 2 for bfloat16, with the state of the row optimizer in float32 in all of
// them. Older versions wrote 0 for every format; the table's own format is in its
// catalog.
//
// All that an index needs to keep of a bucket is its Location of 8 bytes:
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
//	Hold, EndHold             a snapshot keeps the files of all live buckets
//
// A committed bucket need not be durable before Flush has returned. When Flush returns,
// every bucket that was committed before the call is durable. It stays readable until it
// is released, and after that for as long as a snapshot holds its file. Open takes the
// States that snapshots recorded, and deletes every other bucket file of the table.
//
// # Errors
//
// If a write fails, its bytes stay in their buffer and can be read there. The write is
// tried again with every later Begin and Flush of its directory, and both return the
// error as long as the write fails. After a failed sync it is unknown what reached the
// device, so all appends and flushes of that directory fail until the Set is opened
// again from the last snapshot. An append that would exceed the directory's budget or
// its free space returns ErrNoSpace before anything is written. Damaged data is reported
// by a CorruptionError with file, offset and slot. If a read that covers several buckets fails,
// each bucket is read separately, so that a bad sector costs only the bucket that contains it.
//
// # Concurrency
//
// All methods may be called concurrently. directory.mu guards a directory's append
// buffers, and Set.mu guards the files with their counts; code that needs both locks
// directory.mu first. Neither is held during I/O. A bucket that is still in an append
// buffer is copied under directory.mu when it is read. An Appender and a Queue belong to
// one goroutine at a time.
package bucketfile
