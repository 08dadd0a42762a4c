// Package diskfault lets a test make disk operations of its own process fail, if the code that
// performs them calls At first.
package diskfault

import (
	"os"
	"sync/atomic"
)

var ask atomic.Pointer[func(operation, path string) error]

// Inject sets a function f that is called before every disk operation; the operation fails with the
// error that f returns. A nil f ends the injection.
func Inject(f func(operation, path string) error) {
	if f == nil {
		ask.Store(nil)
		return
	}
	ask.Store(&f)
}

// On reports whether a test injects faults.
func On() bool { return ask.Load() != nil }

// At returns the error with which an operation must fail; nil: it may proceed.
func At(operation, path string) error {
	f := ask.Load()
	if f == nil {
		return nil
	}
	if err := (*f)(operation, path); err != nil {
		return &os.PathError{Op: operation, Path: path, Err: err}
	}
	return nil
}
