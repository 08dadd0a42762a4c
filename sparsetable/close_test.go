package sparsetable_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"aibox/sparsetable"
)

// waitingContext tells when somebody waits for its end.
type waitingContext struct {
	context.Context
	waits chan struct{}
}

func (c waitingContext) Done() <-chan struct{} {
	select {
	case c.waits <- struct{}{}:
	default:
	}
	return c.Context.Done()
}

// heldSource is the source of an import that lasts until end is closed.
type heldSource struct{ begun, end chan struct{} }

func (s heldSource) Next() (uint64, []float32, error) {
	close(s.begun)
	<-s.end
	return 0, nil, io.EOF
}

// TestCloseDuringPull: a Pull that is waiting when Close begins gets no rows, whose memory Close gives
// back.
func TestCloseDuringPull(t *testing.T) {
	for _, kind := range []string{sparsetable.KindMemory, sparsetable.KindSSD} {
		t.Run(kind, func(t *testing.T) {
			o := sparsetable.Options{Kind: kind, Dir: t.TempDir(), Layout: stressLayout, MemoryBytes: 8 << 20}
			tab, err := sparsetable.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			imported, pulled, closed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			src := heldSource{make(chan struct{}), make(chan struct{})}
			go func() {
				_, err := tab.Import(t.Context(), src)
				imported <- err
			}()
			<-src.begun
			ctx := waitingContext{t.Context(), make(chan struct{}, 1)}
			go func() {
				_, err := tab.Pull(ctx, []uint64{1, 2, 3}, sparsetable.PullCreate)
				pulled <- err
			}()
			<-ctx.waits // for the import
			go func() { closed <- tab.Close() }()
			untilClosed(t, tab)
			close(src.end)
			if err := <-pulled; !errors.Is(err, sparsetable.ErrClosed) {
				t.Errorf("the Pull: %v", err)
			}
			if err := errors.Join(<-imported, <-closed); err != nil {
				t.Error(err)
			}
		})
	}
}

// untilClosed waits until Close has begun, which another goroutine has called.
func untilClosed(t *testing.T, tab sparsetable.Table) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	until(t, "Close", func() bool {
		_, err := tab.Pull(ended, nil, sparsetable.PullCreate)
		return !errors.Is(err, context.Canceled)
	})
}
