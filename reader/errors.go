package reader

import (
	"context"
	"errors"
	"io/fs"

	"aibox/internal/errkind"
)

// ErrNoExamples is returned (wrapped) where the input holds no example at all:
// no URI, only empty files, or nothing but bad rows within the limits.
var ErrNoExamples = errkind.New(errkind.Data, "no examples in the input")

// InputError says that the input was read, but does not match the options and the
// schema: it has another format, or its header lacks columns of the schema. Faults
// of single rows are reported as a BadRowsError.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*InputError) ErrorKind() errkind.Kind { return errkind.Data }

// CursorError says that reading cannot start at Options.Start, because the input or the options
// differ from those of the reading that the cursor comes from.
type CursorError struct{ Err error }

func (e *CursorError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *CursorError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*CursorError) ErrorKind() errkind.Kind { return errkind.Data }

// AsInputError turns an error of no known kind into an InputError. Failed reads and
// writes, a cancelled context and errors of documented kinds stay as they are.
func AsInputError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errClosed) {
		return err
	}
	var path *fs.PathError
	if _, known := errkind.Find(err); known || errors.As(err, &path) {
		return err
	}
	return &InputError{err}
}
