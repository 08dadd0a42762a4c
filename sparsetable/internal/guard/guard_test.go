package guard

import (
	"context"
	"errors"
	"testing"

	"aibox/sparsetable/internal/contract"
)

// TestDoorWaitsForThoseInside: nobody enters a closed door, and Wait returns once the last
// call has left.
func TestDoorWaitsForThoseInside(t *testing.T) {
	var d Door
	for range 2 {
		if err := d.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	if !d.Close() || d.Close() || !d.Closed() {
		t.Error("the door was not closed exactly once")
	}
	if err := d.Enter(); !errors.Is(err, contract.ErrClosed) {
		t.Errorf("entering a closed door: %v", err)
	}
	d.Leave()
	select {
	case <-d.empty:
		t.Fatal("a call is inside, and Wait would return")
	default:
	}
	d.Leave()
	d.Wait()
	var unused Door
	unused.Close()
	unused.Wait()
}

// TestHoldingGivesBackAfterAnError: where a lock cannot be taken, those before it and the
// door are given back.
func TestHoldingGivesBackAfterAnError(t *testing.T) {
	var d Door
	first, second := NewLock(), NewLock()
	second.Lock()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := d.EnterHolding(ctx, first, second); !errors.Is(err, context.Canceled) {
		t.Fatalf("with a lock that is taken: %v", err)
	}
	second.Release()
	leave, err := d.EnterHolding(t.Context(), first, second)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || len(second) != 1 {
		t.Error("the locks are not held")
	}
	leave()
	d.Close()
	d.Wait()
	if len(first) != 0 || len(second) != 0 {
		t.Error("the locks are still held")
	}
}
