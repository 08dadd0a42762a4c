package fsys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"aibox/internal/errkind"
)

// Kinds of failure, to be tested with errors.Is.
var (
	// ErrNotFound: the path does not exist, or a pattern or directory has no
	// matching file.
	ErrNotFound = errors.New("not found")
	// ErrPermission: the file system or the KDC refused this user.
	ErrPermission = errors.New("permission denied")
	// ErrUnavailable: HDFS could not be reached, or kept failing for the whole
	// retry time.
	ErrUnavailable = errors.New("unavailable")
	// ErrFailed: the operating system failed the operation, such as a write for want of
	// space.
	ErrFailed = errors.New("failed")
	// ErrBeingWritten: the HDFS file is still open for writing.
	ErrBeingWritten = errors.New("still being written")
	// ErrChanged: the file is not the one that was listed.
	ErrChanged = errors.New("changed since it was listed")
	// ErrUnsupported: a kind of URI, file or cluster that this package cannot
	// read.
	ErrUnsupported = errors.New("not supported")
	// ErrConfig: the Hadoop or Kerberos configuration is missing or wrong.
	ErrConfig = errors.New("configuration error")
	// ErrReplaced: a file that should be withdrawn has replaced an older one.
	ErrReplaced = errors.New("the new file is complete and has replaced an older one, whose content is lost")
	// ErrBadStream: compressed data that does not decompress.
	ErrBadStream = errkind.New(errkind.Data, "corrupt compressed data")
)

// Error is a failed operation on one URI.
type Error struct {
	Op   string // "open", "read", "list", …
	URI  string
	Kind error  // one of the kinds above
	Err  error  // the cause; may be nil
	Hint string // what to do about it; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Op, e.URI)
	if e.Kind != ErrFailed || e.Err == nil { // that it failed goes without saying where the cause is known
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Err != nil && e.Err != e.Kind {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap makes both the kind and the cause visible to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// ErrorKind sorts the error for exit codes and reports.
func (e *Error) ErrorKind() errkind.Kind {
	if e.Kind == ErrBadStream {
		return errkind.Data
	}
	return errkind.IO
}

// CorruptError says that no replica of a block holds the bytes that were
// written: the bytes from Offset on failed their checksums and none of them
// was handed out.
type CorruptError struct {
	URI    string
	Block  string // blk_<id>_<generation>
	Offset int64  // in the stored file
	Err    error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("read %s: all replicas are corrupted at byte %d: %v (restore the file, then run again; `hdfs fsck` shows the block)",
		e.URI, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*CorruptError) ErrorKind() errkind.Kind { return errkind.IO }

// Replaced is the error of a Withdraw of a file that has replaced another one.
func Replaced(uri string) error {
	return &Error{Op: "restore", URI: uri, Kind: ErrReplaced, Hint: "only some of the files that belong together are new now; write all of them again"}
}

// OSError turns an error of package os into an *Error with its kind.
func OSError(op, path string, err error) error {
	e := &Error{Op: op, URI: path, Err: err}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		e.Err = pe.Err // without the path, which is in URI
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Kind, e.Err = ErrNotFound, nil
		if !filepath.IsAbs(path) {
			if wd, err := os.Getwd(); err == nil {
				e.Hint = "the path is relative to " + wd
			}
		}
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Err = ErrPermission, nil
		e.Hint = fmt.Sprintf("user id %d may not access it", os.Getuid())
	default:
		e.Kind = ErrFailed
	}
	return e
}

// SameFile compares a file with how it was listed. If the modification time is unknown,
// the file may have grown, since the listed bytes are then assumed to be unchanged.
func SameFile(listed File, now Entry) error {
	switch {
	case now.Dir:
		return &Error{Op: "open", URI: listed.URI, Kind: ErrUnsupported, Err: errors.New("is a directory")}
	case now.Size < listed.Size, now.Size > listed.Size && !listed.ModTime.IsZero():
		return &Error{Op: "open", URI: listed.URI, Kind: ErrChanged,
			Err:  fmt.Errorf("it had %d bytes and now has %d", listed.Size, now.Size),
			Hint: "do not write to a job's input while it runs"}
	case !listed.ModTime.IsZero() && !listed.ModTime.Equal(now.ModTime):
		return &Error{Op: "open", URI: listed.URI, Kind: ErrChanged,
			Err: fmt.Errorf("its modification time was %s and now is %s",
				listed.ModTime.Format(TimeFormat), now.ModTime.Format(TimeFormat)),
			Hint: "do not write to a job's input while it runs"}
	}
	return nil
}

// TimeFormat is how errors show modification times.
const TimeFormat = "2006-01-02 15:04:05.000"
