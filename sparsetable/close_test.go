package sparsetable_test

import (
	"context"
	"errors"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// waitingContext reports when a goroutine waits for its end.
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

// TestCloseDuringPull checks that a Pull that is waiting when Close begins gets no rows, since
// Close frees their memory.
func TestCloseDuringPull(t *testing.T) {
	for _, kind := range []string{sparsetable.KindMemory, sparsetable.KindSSD} {
		t.Run(kind, func(t *testing.T) {
			o := sparsetable.Options{Kind: kind, Dir: t.TempDir(), Layout: tabletest.CountLayout, MemoryBytes: 8 << 20}
			tab, err := sparsetable.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			imported, pulled, closed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			src := tabletest.NewHeldSource()
			go func() {
				_, err := tab.Import(t.Context(), src)
				imported <- err
			}()
			<-src.Begun
			ctx := waitingContext{t.Context(), make(chan struct{}, 1)}
			go func() {
				_, err := tab.Pull(ctx, []uint64{1, 2, 3}, sparsetable.PullCreate)
				pulled <- err
			}()
			<-ctx.waits // for the import
			go func() { closed <- tab.Close() }()
			tabletest.UntilClosed(t, tab)
			close(src.End)
			if err := <-pulled; !errors.Is(err, sparsetable.ErrClosed) {
				t.Errorf("the Pull: %v", err)
			}
			if err := errors.Join(<-imported, <-closed); err != nil {
				t.Error(err)
			}
		})
	}
}
