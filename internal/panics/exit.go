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

// Exit, when deferred, ends the process with exit code 1 if the function panics. It is for
// goroutines that others wait for or that hold locks, so that the process could not continue
// without them. The effect is that of a crash: committed state stays.
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

// ExitAfter makes every panic caught from now on end the process with exit code 1, if the process
// is still running after the given time: the panic may have left a lock held that an orderly
// shutdown waits for. say reports a panic that ends the process. The program calls ExitAfter once,
// when it starts.
func ExitAfter(patience time.Duration, say func(*Error)) {
	report = say
	caught = func(err *Error) { time.AfterFunc(patience, func() { exit(err) }) }
}

// caught is called for every new Error.
var caught = func(*Error) {}
