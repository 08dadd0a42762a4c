package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"aibox/internal/errkind"
)

// InputError says that the input was read, but does not match the options and the
// schema: it has another format, or its header lacks columns of the schema. Faults
// of single rows are reported as a BadRowsError.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*InputError) ErrorKind() errkind.Kind { return errkind.Data }

// OptionsError says that options or schema contradict themselves or name what
// the input does not have.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *OptionsError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*OptionsError) ErrorKind() errkind.Kind { return errkind.Usage }

// CursorError says that reading cannot start at Options.Start: the input or the options
// are others than those of the reading that it comes from.
type CursorError struct{ Err error }

func (e *CursorError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *CursorError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*CursorError) ErrorKind() errkind.Kind { return errkind.Data }

func optionsErrorf(format string, args ...any) error {
	return &OptionsError{fmt.Errorf(format, args...)}
}

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
