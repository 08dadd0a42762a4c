package terminal

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Results is standard output. It remembers a failed write, so that a command whose results were
// lost, for example on a full disk, does not end successfully. A closed pipe is not a failure,
// because nobody reads the results; the process is then ended by SIGPIPE, unless the command
// ignores that signal.
type Results struct {
	out io.Writer
	err error
}

func (r *Results) Write(p []byte) (int, error) {
	n, err := r.out.Write(p)
	if errors.Is(err, unix.EPIPE) {
		return len(p), nil
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("standard output: %w", err)
	}
	return n, err
}

// NewResults returns a Results that writes to out.
func NewResults(out io.Writer) *Results { return &Results{out: out} }

// Err returns the first error of a write, or nil.
func (r *Results) Err() error { return r.err }
