// Package source turns URIs into bytes: it lists the input files of a job and
// reads them, from the local file system or from HDFS, compressed or not.
//
//	URIs --Expand--> []File --OpenRange--> stored bytes --Decompress--> text
//	                        \-OpenAt-----> random access (Parquet)
//
// # URIs
//
// A URI is a local path (optionally file://), or hdfs://authority/path, where
// the authority is host:port, a name service of hdfs-site.xml, or empty for
// fs.defaultFS. The path may be a file, a directory, or a glob with *, ?,
// [a-z] and {a,b}. A directory stands for all files below it. Names that start
// with "." or "_" are hidden, as in Hadoop (_SUCCESS, _temporary): neither a
// directory nor a wildcard yields them. Matches are in byte order of the path,
// so that the same directory always gives the same sequence of files.
//
// # Promises
//
// What a reader hands out are the file's bytes or an error, never anything
// else:
//
//   - Every byte from HDFS has passed its checksum before it is handed out; a
//     replica that is corrupted, cut short or without checksums is replaced by
//     another one and reported to the NameNode, and when all replicas of a block
//     are bad the error is a *CorruptError with file, block and offset. Bytes
//     without any checksum are handed out, with a warning, only where
//     HDFSOptions.AllowMissingChecksums is set and no other replica can be read.
//   - A file that changed since it was listed (length or modification time) is
//     an error (ErrChanged), not a mixture of old and new bytes.
//   - An HDFS file that is still open for writing is an error (ErrBeingWritten)
//     when it is listed: its visible length would depend on the moment.
//   - A compressed stream that ends early is an error that wraps
//     io.ErrUnexpectedEOF.
//
// Faults that pass (a NameNode that restarts or fails over, a DataNode that
// died or hangs, an expired block token) are retried at the present offset,
// with back-off, for HDFSOptions.RetryMs, from the first contact on. Faults
// that do not pass (no such file, no permission, wrong keytab) are reported at
// once.
//
// Of several NameNodes, the one that served last is asked first, and the next
// one when it fails or lets the time limit pass, which counts as no retry. One
// that was silent is then left alone for a while, so that it costs its time
// limit once and not with every connection.
//
// # Reading blocks
//
//	hdfsReader --where is it?--> fileBlocks --> NameNode
//	    \-----from whom?-------> nodes           (who failed lately)
//	     \----bytes------------> blockStream --> DataNode
//
// A DataNode has TimeoutMs to give a packet (64 KiB, usually). One that does not,
// that hangs up twice at the same byte, or whose bytes do not match their
// checksums is left for the next replica at the present offset. One that gives
// less than 1 MiB/s for two seconds (of waiting; half of TimeoutMs where that is
// less) is left as soon as another one has delivered. Both are then asked last
// for five minutes, by all readers, so that a DataNode that swallows everything
// costs its time limit once and not with every block. When no replica is left,
// that is one failed attempt, and the NameNode is asked anew where the block is;
// attempts without progress end after RetryMs. So every loop has an end: a
// replica is used up, bytes arrive, or time passes.
//
// The blocks are read by a reader of our own (hdfs_read.go, hdfs_replicas.go,
// hdfs_stream.go, hdfs_packet.go, hdfs_blocks.go, hdfs_sasl.go) over NameNode calls of the client library
// (github.com/colinmarc/hdfs). The library's block reader opens a replica that
// ends early again and again, without a limit; it takes a replica without
// checksums as it is; it hands out bytes whose checksum was wrong, unless one
// asks for less than a checksum chunk at a time; and it cannot be told which
// replica to leave out, nor how long to wait. Around it stood reads of 511 bytes,
// comparisons of pointers, a sniffer of handshakes and guesses about which
// replica it had given up, and the first two faults could not be mended that way.
// Our reader has 1,200 lines, and 370 for the handshake of secured DataNodes,
// where 400 lines stood around 1,500 of the library's. It is the safer one: each
// fault is one case in it, tests drive each case without a cluster
// (hdfs_stream_test.go), and it knows integrity protection and RC4, with which the
// library cannot read. What is left of the library are configuration, Kerberos,
// calls of NameNodes and the types of messages; hdfs_rpc.go reaches into one
// private field of it to make calls that it does not offer.
//
// # Limits
//
//   - Erasure-coded files are refused, and files in encryption zones (whose keys
//     a KMS holds).
//   - A ticket cache must be a file: KCM: and KEYRING: are refused with a hint.
//   - A DataNode is spoken to over TCP also when it is on the same machine (no
//     short-circuit reads).
//   - Data transfer protection works at all levels: authentication, integrity,
//     privacy by AES or RC4, and dfs.encrypt.data.transfer. Integrity and RC4 are
//     slower than AES (dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding).
//
// # Writing
//
// An output is visible under its name when Close has returned nil, and not
// before. A file for HDFS is collected on the local disk ($TMPDIR) and uploaded
// by Close to a hidden name, .NAME.<12 hexadecimal digits>.aibox.tmp, which is
// then renamed. An upload that fails or is interrupted removes that file; what a
// killed run left is removed by the next upload to the same directory, once the
// NameNode has not heard of its writer for a minute.
//
// A DataNode that is dead or hangs costs its time limit at most: the block is
// given up and written again from the local copy without that DataNode, and
// further files do without it for a while. The client library has no such thing:
// its writer neither tells the NameNode whom to leave out nor can be made to,
// except by reaching into its private fields. A writer of our own, over the
// handshake and the messages that reading needs anyway, is about 400 lines
// (hdfs_upload.go, hdfs_pipeline.go) and no trick: a block that fails is written
// once more as a whole, so that it needs none of Hadoop's pipeline recovery.
//
// Directories whose files are erasure coded or encrypted are refused.
//
// # Concurrency
//
// Sources is safe for concurrent use. A reader or writer belongs to one
// goroutine at a time; a ReaderAtCloser may be used by many.
package source
