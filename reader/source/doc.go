// Package source turns URIs into bytes: it lists the input files of a job and
// reads them, from the local file system or from HDFS, compressed or not.
//
//	URIs --Expand--> []File --OpenRange--> stored bytes --Decompress--> text
//	                        \-OpenAt-----> random access (Parquet)
//
// # URIs
//
// A URI is a local path (optionally file:// or file://localhost), or hdfs://authority/path, where
// the authority is host:port, a name service of hdfs-site.xml, or empty for fs.defaultFS. The path
// may be a file, a directory, or a glob with *, ?, [a-z], {a,b}, and ** for directories at any
// depth. A directory stands for all files below it. Names that start with "." or "_" are hidden, as
// in Hadoop (_SUCCESS, _temporary): neither a directory nor a wildcard yields them. Matches are in
// byte order of the path, so that the same directory always gives the same sequence of files.
//
// # Promises
//
// A reader hands out the file's bytes or an error, never anything else:
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
//   - A local link that leads nowhere is an error where a directory or a wildcard of
//     the input yields it: what it leads to may be data on a disk that is not mounted.
//   - A compressed stream that ends early is an error that wraps
//     io.ErrUnexpectedEOF.
//
// Transient failures are retried: package hadoop says how, and what it cannot read.
//
// # Rooms
//
// Package fsys has what file systems have in common: the interface and the errors. Package hadoop
// implements HDFS. Package listing finds the files that a path or a pattern stands for. Local
// files, compression and the interface to callers are in this package.
//
// # Writing
//
// An output is visible under its name when Close has returned nil, and not
// before.
//
// # Concurrency
//
// Sources is safe for concurrent use. A reader or writer belongs to one
// goroutine at a time; a ReaderAtCloser may be used by many.
package source
