package source

import (
	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop"
)

// What files and file systems have in common, and how HDFS is reached.
type (
	// Error is a failed operation on one URI.
	Error = fsys.Error
	// CorruptError says that no replica of a block holds the bytes that were written.
	CorruptError = fsys.CorruptError
	// Writer writes one output file. Nothing is visible under the file's name before Close
	// has returned nil.
	Writer = fsys.Writer
	// ReaderAtCloser reads at any offset of one file. It is safe for concurrent use.
	ReaderAtCloser = fsys.ReaderAtCloser
	// HDFSOptions says how to reach HDFS beyond what core-site.xml and hdfs-site.xml say.
	HDFSOptions = hadoop.Options
)

// NoRetry as HDFSOptions.RetryMs means no retries.
const NoRetry = hadoop.NoRetry

// Kinds of failure, to be tested with errors.Is.
var (
	ErrNotFound     = fsys.ErrNotFound
	ErrPermission   = fsys.ErrPermission
	ErrUnavailable  = fsys.ErrUnavailable
	ErrFailed       = fsys.ErrFailed
	ErrBeingWritten = fsys.ErrBeingWritten
	ErrChanged      = fsys.ErrChanged
	ErrUnsupported  = fsys.ErrUnsupported
	ErrConfig       = fsys.ErrConfig
	ErrReplaced     = fsys.ErrReplaced
	ErrBadStream    = fsys.ErrBadStream
)
