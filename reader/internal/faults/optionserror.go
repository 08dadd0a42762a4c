package faults

import (
	"fmt"

	"aibox/internal/errkind"
)

// OptionsError says that options or schema contradict themselves or name what
// the input does not have.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *OptionsError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*OptionsError) ErrorKind() errkind.Kind { return errkind.Usage }

// OptionsErrorf makes an OptionsError.
func OptionsErrorf(format string, args ...any) error {
	return &OptionsError{fmt.Errorf(format, args...)}
}
