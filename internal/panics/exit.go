package panics

import (
	"fmt"
	"os"
	"time"

	"aibox/internal/errkind"
)

// exit ends the process; tests replace it.
var exit = func(err *Error) {
	report(err)
	os.Exit(errkind.Internal.ExitCode())
}

// report says why the process ends.
var report = func(err *Error) { fmt.Fprintf(os.Stderr, "aibox: %v\n", err) }

// Exit, deferred, ends the process with exit code 1 when the function panics. It
// is for goroutines on which others wait, or which hold locks, so that nobody
// could go on without what they were doing. The process is left as by a crash:
// what was committed stays.
func Exit(where string) {
	if v := recover(); v != nil {
		exit(New(where, v))
	}
}

// Go starts f on a goroutine of its own, with Exit.
func Go(where string, f func()) {
	go func() {
		defer Exit(where)
		f()
	}()
}

// ExitAfter makes every panic that is caught from now on end the process with
// exit code 1 if it is still there after the given time: the panic may have left
// a lock behind for which the orderly end waits. say reports a panic that ends the
// process. The program calls it once, when it starts.
func ExitAfter(patience time.Duration, say func(*Error)) {
	report = say
	caught = func(err *Error) { time.AfterFunc(patience, func() { exit(err) }) }
}

// caught is called for every new Error.
var caught = func(*Error) {}
