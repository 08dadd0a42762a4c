package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

var (
	// ErrNotExist: there is no catalog in the directory (Options.MustExist).
	ErrNotExist = errors.New("catalog: there is none in the directory")
	// ErrNoSnapshot: no snapshot of that id is kept.
	ErrNoSnapshot = errors.New("catalog: no such snapshot")
	// ErrReadOnly: the catalog was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("catalog: opened for reading only")
	// ErrClosed: the catalog was closed.
	ErrClosed = errors.New("catalog: closed")
	// ErrFailed: the database could not be written in a way that leaves unknown
	// what is on disk. Only a new process can tell.
	ErrFailed = errors.New("catalog: a write failed half-way: restart to go on from the last committed snapshot")
)

// FormatError: the table is of another shape than asked for.
type FormatError struct {
	Dir   string
	Field string // of Format, as in JSON
	Have  any    // what the table is
	Want  any    // what was asked for
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("catalog: the table in %s has %s %v, asked for is %v: open it as what it is, or make a new one elsewhere", e.Dir, e.Field, e.Have, e.Want)
}

// CorruptionError: what the catalog holds is damaged.
type CorruptionError struct {
	Dir  string
	What string // the damaged part
	Err  error
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("catalog: %s is damaged in %s: %v", e.Dir, e.What, e.Err)
}

func (e *CorruptionError) Unwrap() error { return e.Err }

func (c *Catalog) corrupt(what string, format string, args ...any) error {
	return &CorruptionError{Dir: c.dir, What: what, Err: fmt.Errorf(format, args...)}
}

// wrap says what failed, and makes damage that Pebble found a *CorruptionError.
func (c *Catalog) wrap(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFailed), errors.As(err, new(*CorruptionError)), errors.As(err, new(*FormatError)), errors.Is(err, ErrNotExist):
		return err
	case pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist), strings.Contains(err.Error(), "object size mismatch"):
		// The manifest names a file that is not there, or is not as long: the
		// file or the manifest is damaged.
		return &CorruptionError{Dir: c.dir, What: "its database", Err: err}
	}
	return fmt.Errorf("catalog: %s: %s: %w", c.dir, doing, err)
}
