package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"aibox/reader/source"
)

// InputError says that the input was read, but is not what options and schema
// say of it: another format, a header without the schema's columns. Faults of
// single rows are BadRowsError's.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Err }

// OptionsError says that options or schema contradict themselves or name what
// the input does not have.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *OptionsError) Unwrap() error { return e.Err }

func optionsErrorf(format string, args ...any) error {
	return &OptionsError{fmt.Errorf(format, args...)}
}

// AsInputError makes an error without a type an InputError. Failed reads and
// writes, a cancelled context and what is documented otherwise stay as they
// are.
func AsInputError(ctx context.Context, err error) error {
	var (
		failed  *source.Error
		corrupt *source.CorruptError
		path    *fs.PathError
		bad     *BadRowsError
		lost    *LostDataError
		input   *InputError
		options *OptionsError
	)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrNoExamples), errors.Is(err, errClosed),
		errors.As(err, &failed), errors.As(err, &corrupt), errors.As(err, &path),
		errors.As(err, &bad), errors.As(err, &lost), errors.As(err, &input), errors.As(err, &options):
		return err
	}
	return &InputError{err}
}
