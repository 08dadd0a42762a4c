package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"aibox/internal/errkind"
)

// InputError says that the input was read, but is not what options and schema
// say of it: another format, a header without the schema's columns. Faults of
// single rows are BadRowsError's.
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

func optionsErrorf(format string, args ...any) error {
	return &OptionsError{fmt.Errorf(format, args...)}
}

// AsInputError makes an error of no known kind an InputError. Failed reads and
// writes, a cancelled context and what is documented otherwise stay as they
// are.
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
