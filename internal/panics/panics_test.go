package panics

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aibox/internal/errkind"
)

func explode() { panic("index out of cheese") }

func TestPanicBecomesError(t *testing.T) {
	err := Do("the reader", func() error { explode(); return nil })
	var p *Error
	if !errors.As(err, &p) || p.Where != "the reader" || p.Value != "index out of cheese" || !strings.Contains(string(p.Stack), "explode") {
		t.Fatalf("%v", err)
	}
	if again := Do("somebody else", func() error { panic(p) }); again != error(p) {
		t.Errorf("a panic that was handed on became %v", again)
	}
	if err := Do("the reader", func() error { panic(io.EOF) }); errors.Is(err, io.EOF) {
		t.Error("a panic with an error is taken for that error")
	}
}

func TestErrorsPass(t *testing.T) {
	if err := Do("x", func() error { return io.EOF }); err != io.EOF {
		t.Errorf("%v", err)
	}
	if err := Do("x", func() error { return nil }); err != nil {
		t.Errorf("%v", err)
	}
}

func TestExit(t *testing.T) {
	ended := make(chan *Error, 1)
	before := exit
	defer func() { exit = before }()
	exit = func(err *Error) { ended <- err }
	Go("the writer", explode)
	if err := <-ended; err.Where != "the writer" || !strings.Contains(string(err.Stack), "explode") {
		t.Errorf("%v", err)
	}
	Go("the writer", func() { close(ended) })
	if err := <-ended; err != nil {
		t.Errorf("a function that returned ended the process: %v", err)
	}
}

// TestExitSays: what ExitAfter was given reports the panic that ends the process.
func TestExitSays(t *testing.T) {
	if os.Getenv("AIBOX_TEST_PANIC") != "" {
		ExitAfter(time.Hour, func(err *Error) { fmt.Println("said:", err.Where) })
		Go("the writer", explode)
		time.Sleep(time.Minute)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestExitSays$")
	c.Env = append(os.Environ(), "AIBOX_TEST_PANIC=1")
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != errkind.Internal.ExitCode() || string(out) != "said: the writer\n" {
		t.Errorf("%v, %s", err, out)
	}
}

// TestExitAfter: a panic that was caught ends the process if that does not end
// by itself, with the panic that came first.
func TestExitAfter(t *testing.T) {
	exitBefore, caughtBefore, reportBefore := exit, caught, report
	defer func() { exit, caught, report = exitBefore, caughtBefore, reportBefore }()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan *Error, 1)
		exit = func(err *Error) { ended <- err }
		ExitAfter(time.Minute, nil)
		start := time.Now()
		err := Do("the reader", func() error { explode(); return nil })
		if got := <-ended; error(got) != err || time.Since(start) != time.Minute {
			t.Errorf("%v after %v, want %v", got, time.Since(start), err)
		}
	})
}
