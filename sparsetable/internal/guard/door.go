package guard

import (
	"context"
	"sync"

	"aibox/sparsetable/internal/contract"
)

// Door counts the calls of a table's methods that are in progress. The zero value is open.
type Door struct {
	mu     sync.Mutex
	inside int
	empty  chan struct{} // closed once the door is closed and nobody is inside; nil while it is open
}

// Enter counts a call that is in progress until Leave. It returns ErrClosed if the door is closed.
func (d *Door) Enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.empty != nil {
		return contract.ErrClosed
	}
	d.inside++
	return nil
}

// Leave ends a call that entered.
func (d *Door) Leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.inside == 0 && d.empty != nil {
		close(d.empty)
	}
}

// Close makes later Enters fail. It reports whether the door was open.
func (d *Door) Close() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.empty != nil {
		return false
	}
	d.empty = make(chan struct{})
	if d.inside == 0 {
		close(d.empty)
	}
	return true
}

// Wait waits until all calls have left. REQUIRES: the door is closed.
func (d *Door) Wait() { <-d.empty }

// Closed reports whether the door is closed.
func (d *Door) Closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.empty != nil
}

// EnterHolding enters and acquires locks in order. leave releases the locks and leaves the door.
// After an error nothing is held.
func (d *Door) EnterHolding(ctx context.Context, locks ...Lock) (leave func(), err error) {
	if err := d.Enter(); err != nil {
		return nil, err
	}
	held := 0
	leave = func() {
		for i := held - 1; i >= 0; i-- {
			locks[i].Release()
		}
		d.Leave()
	}
	for _, l := range locks {
		if err := l.Acquire(ctx); err != nil {
			leave()
			return nil, err
		}
		held++
	}
	return leave, nil
}
