package guard

import (
	"context"
	"errors"
	"testing"

	"aibox/sparsetable/internal/contract"
)

// TestWaitWaitsForCalls checks that no call begins after Close, and that Wait returns once the last
// call has ended.
func TestWaitWaitsForCalls(t *testing.T) {
	var c Calls
	for range 2 {
		if err := c.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if !c.Close() || c.Close() || !c.Closed() {
		t.Error("the calls were not closed exactly once")
	}
	if err := c.Begin(); !errors.Is(err, contract.ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
	c.End()
	select {
	case <-c.ended:
		t.Fatal("a call is in progress, but Wait would return")
	default:
	}
	c.End()
	c.Wait()
	var unused Calls
	unused.Close()
	unused.Wait()
}

// TestBeginLockedAfterAnError checks that if a lock cannot be acquired, those before it are released
// and the call is no longer counted.
func TestBeginLockedAfterAnError(t *testing.T) {
	var c Calls
	first, second := NewLock(), NewLock()
	second.Lock()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.BeginLocked(ctx, first, second); !errors.Is(err, context.Canceled) {
		t.Fatalf("with a lock that is taken: %v", err)
	}
	second.Release()
	end, err := c.BeginLocked(t.Context(), first, second)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || len(second) != 1 {
		t.Error("the locks are not held")
	}
	end()
	c.Close()
	c.Wait()
	if len(first) != 0 || len(second) != 0 {
		t.Error("the locks are still held")
	}
}
