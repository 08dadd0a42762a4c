package pipeline

import (
	"context"
	"sync"
	"time"
)

// Output is the end of a stage, from which the next stage takes its items.
type Output[T any] struct {
	p     *Pipeline
	from  *stage
	queue chan T
	meter *meter
	ahead *ahead[T] // nil if the source runs no further ahead than the queue's depth

	dropping sync.Mutex // held while onDrop runs
	onDrop   func(T)
}

// OnDrop sets the function that gets every item that was emitted but not handed to the next stage
// because the run was cancelled. Run's goroutine and those of the two stages call it, one call at a
// time. It must be set before Run.
func (o *Output[T]) OnDrop(f func(T)) { o.onDrop = f }

// send queues v and reports true, or drops it because the run was cancelled.
func (o *Output[T]) send(ctx context.Context, v T) bool {
	if ctx.Err() != nil {
		o.drop(v)
		return false
	}
	if o.ahead != nil {
		o.ahead.put(v)
	}
	select {
	case o.queue <- v: // the common case needs no clock
	default:
		o.from.clock.enter(Blocked, time.Now())
		select {
		case o.queue <- v:
		case <-ctx.Done():
			o.drop(v)
			return false
		}
	}
	now := time.Now()
	o.from.clock.enter(Busy, now)
	o.meter.tick(now)
	return true
}

// receive takes the next item; ok is false at the end of the stream. Its only
// error is errCut.
func (o *Output[T]) receive(ctx context.Context, c *clock) (v T, ok bool, err error) {
	if ctx.Err() != nil {
		return v, false, errCut
	}
	select {
	case v, ok = <-o.queue:
	default:
		c.enter(Starved, time.Now())
		select {
		case v, ok = <-o.queue:
		case <-ctx.Done():
			return v, false, errCut
		}
	}
	if !ok {
		return v, false, nil
	}
	o.taken(v)
	if ctx.Err() != nil { // select picks at random when both are ready
		o.drop(v)
		return v, false, errCut
	}
	return v, true, nil
}

// receiveNow is receive without waiting.
func (o *Output[T]) receiveNow() (v T, ok bool) {
	select {
	case v, ok = <-o.queue:
	default:
	}
	if ok {
		o.taken(v)
	}
	return v, ok
}

// receiveWithin waits for the next item until patience has passed, enough is ready or the run is
// cancelled.
func (o *Output[T]) receiveWithin(ctx context.Context, c *clock, patience time.Duration, enough <-chan struct{}) (v T, ok bool) {
	c.enter(Starved, time.Now())
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v, ok = <-o.queue:
	case <-enough:
	case <-timer.C:
	case <-ctx.Done():
	}
	if ok {
		o.taken(v)
	}
	c.enter(Busy, time.Now())
	return v, ok
}

// taken records that v has left the queue.
func (o *Output[T]) taken(v T) {
	if o.ahead != nil {
		o.ahead.take(v)
	}
	o.meter.tick(time.Now())
}

func (o *Output[T]) drop(v T) {
	if o.onDrop == nil {
		return
	}
	o.dropping.Lock()
	defer o.dropping.Unlock()
	o.onDrop(v)
}

func (o *Output[T]) close() { close(o.queue) }

// drain drops what is queued. REQUIRES: both stages have ended.
func (o *Output[T]) drain() {
	for v := range o.queue {
		o.drop(v)
	}
}
