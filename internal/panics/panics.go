// Package panics turns panics into errors.
//
// The Go runtime ends a process when any goroutine panics, whatever the other goroutines are doing,
// with its own exit code. Every goroutine that a job starts therefore catches its panics and passes
// them on, as errors, to the goroutine that waits for it. The job then ends in an orderly way, and
// uncommitted changes are undone.
package panics

import (
	"fmt"
	"runtime/debug"

	"aibox/internal/errkind"
)

// Error is a panic that was caught. It does not unwrap to the panic's value: a
// panic is a fault of the program, whatever it was called with.
type Error struct {
	Where string // what panicked, for instance "stage RE"
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s panicked: %v\n%s", e.Where, e.Value, e.Stack)
}

// ErrorKind sorts the error for exit codes and reports.
func (*Error) ErrorKind() errkind.Kind { return errkind.Internal }

// New returns the error for a panic with value v. It must be called on the goroutine that panicked,
// before the deferred function that recovered returns. An *Error, which is an earlier panic passed
// on, is returned unchanged.
func New(where string, v any) *Error {
	if e, ok := v.(*Error); ok {
		return e
	}
	e := &Error{Where: where, Value: v, Stack: debug.Stack()}
	caught(e)
	return e
}

// Catch, when deferred, stores a panic of the function, as an error, in *err.
func Catch(where string, err *error) {
	if v := recover(); v != nil {
		*err = New(where, v)
	}
}

// Do calls f and returns its error, or its panic as an error.
func Do(where string, f func() error) (err error) {
	defer Catch(where, &err)
	return f()
}
