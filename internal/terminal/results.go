package terminal

import (
	"fmt"
	"io"
)

// Results is standard output. It remembers a failed write, so that a full disk
// is never taken for success.
type Results struct {
	out io.Writer
	err error
}

func (r *Results) Write(p []byte) (int, error) {
	n, err := r.out.Write(p)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("standard output: %w", err)
	}
	return n, err
}

// NewResults returns results that are written to out.
func NewResults(out io.Writer) *Results { return &Results{out: out} }

// Err is why results were lost; nil: they were not.
func (r *Results) Err() error { return r.err }
