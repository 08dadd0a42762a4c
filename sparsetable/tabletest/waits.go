package tabletest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"aibox/sparsetable"
)

// Until waits for something that happens in the background.
func Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// UntilClosed waits until Close, called by another goroutine, has begun.
func UntilClosed(t *testing.T, tab sparsetable.Table) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	Until(t, "Close", func() bool {
		_, err := tab.Pull(ended, nil, sparsetable.PullCreate)
		return !errors.Is(err, context.Canceled)
	})
}

// HeldSource is a source for an import that does not end before End is closed.
type HeldSource struct{ Begun, End chan struct{} }

// NewHeldSource returns a source whose Next has not been called yet.
func NewHeldSource() HeldSource { return HeldSource{make(chan struct{}), make(chan struct{})} }

// Next implements sparsetable.RowSource.
func (s HeldSource) Next() (uint64, []float32, error) {
	close(s.Begun)
	<-s.End
	return 0, nil, io.EOF
}
