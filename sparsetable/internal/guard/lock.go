package guard

import "context"

// Lock is a mutex whose acquisition can be cancelled by a context. It is a channel with room for
// one element.
type Lock chan struct{}

// NewLock returns a lock that nobody holds.
func NewLock() Lock { return make(Lock, 1) }

// Acquire takes the lock, or fails when ctx ends.
func (l Lock) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lock takes the lock, however long that takes.
func (l Lock) Lock() { l <- struct{}{} }

// Release gives the lock back.
func (l Lock) Release() { <-l }
