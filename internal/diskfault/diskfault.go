// Package diskfault lets a test fail the operations on disk of the process that it runs
// in, wherever the code that does them asks At first.
package diskfault

import (
	"os"
	"sync/atomic"
)

var ask atomic.Pointer[func(operation, path string) error]

// Inject has f called before every operation on disk, which fails with the error that f
// returns. nil ends it.
func Inject(f func(operation, path string) error) {
	if f == nil {
		ask.Store(nil)
		return
	}
	ask.Store(&f)
}

// On reports whether a test injects faults.
func On() bool { return ask.Load() != nil }

// At is the error with which an operation is to fail; nil: it is not.
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
