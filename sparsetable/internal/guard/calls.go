package guard

import (
	"context"
	"sync"

	"aibox/sparsetable/internal/contract"
)

// Calls counts the calls of a table's methods that are in progress, until it is closed. The zero
// value is open.
type Calls struct {
	mu      sync.Mutex
	running int
	ended   chan struct{} // closed once no more calls may begin and none is in progress; nil while calls may begin
}

// Begin counts a call that is in progress until End. After Close it returns ErrClosed.
func (c *Calls) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return contract.ErrClosed
	}
	c.running++
	return nil
}

// End ends a call that Begin has counted.
func (c *Calls) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.ended != nil {
		close(c.ended)
	}
}

// Close makes later Begins fail. It reports whether this is the first Close.
func (c *Calls) Close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return false
	}
	c.ended = make(chan struct{})
	if c.running == 0 {
		close(c.ended)
	}
	return true
}

// Wait waits until all calls have ended. REQUIRES: Close was called.
func (c *Calls) Wait() { <-c.ended }

// Closed reports whether Close was called.
func (c *Calls) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil
}

// BeginLocked is Begin, and acquires locks in order. end releases the locks and ends the call. After
// an error, no lock is held and no call is counted.
func (c *Calls) BeginLocked(ctx context.Context, locks ...Lock) (end func(), err error) {
	if err := c.Begin(); err != nil {
		return nil, err
	}
	held := 0
	end = func() {
		for i := held - 1; i >= 0; i-- {
			locks[i].Release()
		}
		c.End()
	}
	for _, l := range locks {
		if err := l.Acquire(ctx); err != nil {
			end()
			return nil, err
		}
		held++
	}
	return end, nil
}
