package tabletest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"aibox/sparsetable"
)

// Until waits for what the background does.
func Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// UntilClosed waits until Close has begun, which another goroutine has called.
func UntilClosed(t *testing.T, tab sparsetable.Table) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	Until(t, "Close", func() bool {
		_, err := tab.Pull(ended, nil, sparsetable.PullCreate)
		return !errors.Is(err, context.Canceled)
	})
}

// HeldSource is the source of an import that lasts until End is closed.
type HeldSource struct{ Begun, End chan struct{} }

// NewHeldSource returns a source whose Next was not called.
func NewHeldSource() HeldSource { return HeldSource{make(chan struct{}), make(chan struct{})} }

// Next implements sparsetable.RowSource.
func (s HeldSource) Next() (uint64, []float32, error) {
	close(s.Begun)
	<-s.End
	return 0, nil, io.EOF
}
