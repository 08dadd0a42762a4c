// Package panics turns panics into errors.
//
// Go ends a process whose goroutine panics, whatever the other goroutines are
// in the middle of, with an exit code of its own. So every goroutine that a job
// starts catches its panics and hands them, as errors, to whoever waits for it:
// the job then ends in an orderly way, and what it has not committed is undone.
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

// New is the error for a panic with value v. It is to be called on the goroutine
// that panicked, before the deferred function that recovered returns. A value
// that is an *Error is that panic handed on, and stays as it is.
func New(where string, v any) *Error {
	if e, ok := v.(*Error); ok {
		return e
	}
	e := &Error{Where: where, Value: v, Stack: debug.Stack()}
	caught(e)
	return e
}

// Catch, deferred, makes a panic of the function the error that err points to.
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
