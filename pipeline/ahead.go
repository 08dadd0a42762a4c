package pipeline

import (
	"context"
	"sync"
	"time"
)

// Ahead lets a source run further ahead than the depth of the queue behind it. The source may
// always go on to the next item while at most depth items wait, as it can without an Ahead (then
// depth items are queued and the source holds one more). Beyond that, it may go on while fewer than
// Items() items wait and Bytes has room for one more item of the largest size seen so far. An item
// on which a stage is working does not count as waiting.
type Ahead[T any] struct {
	Items    func() int    // the current limit on waiting items; called before every item
	MaxItems int           // an upper bound of Items()
	Bytes    int64         // limit on the total size of the waiting items
	Size     func(T) int64 // bytes of an item
}

// ahead is the state of an Ahead during a run.
type ahead[T any] struct {
	Ahead[T]
	depth int
	taken chan struct{} // signals that an item was taken since the source last looked

	mu             sync.Mutex
	waiting        int
	bytes, largest int64
}

// RunAhead sets how far the source runs ahead. It must be called before the next
// stage is put behind o.
func (o *Output[T]) RunAhead(a Ahead[T]) {
	if o.from.consumed {
		panic("pipeline: RunAhead of stage " + o.from.name + " was called after another stage was put behind it")
	}
	o.ahead = &ahead[T]{Ahead: a, taken: make(chan struct{}, 1)}
}

// queueFor returns the capacity of the queue behind o for the given depth.
func (o *Output[T]) queueFor(depth int) int {
	if o.ahead == nil {
		return depth
	}
	o.ahead.depth = depth
	return max(depth+1, o.ahead.MaxItems) // one more, for the item that the source would hold without an Ahead
}

// put counts an item that is about to be queued.
func (a *ahead[T]) put(v T) {
	size := a.Size(v)
	a.mu.Lock()
	a.waiting++
	a.bytes += size
	a.largest = max(a.largest, size)
	a.mu.Unlock()
}

// take counts an item that has left the queue.
func (a *ahead[T]) take(v T) {
	size := a.Size(v)
	a.mu.Lock()
	a.waiting--
	a.bytes -= size
	a.mu.Unlock()
	select {
	case a.taken <- struct{}{}:
	default:
	}
}

// room reports whether the source may go on, and how many items may wait at present.
func (a *ahead[T]) room() (ok bool, most int) {
	items := min(a.Items(), a.MaxItems)
	a.mu.Lock()
	defer a.mu.Unlock()
	most = max(a.depth+1, min(items, int(a.Bytes/max(1, a.largest))))
	return a.waiting <= a.depth || a.waiting < items && a.bytes+a.largest <= a.Bytes, most
}

// wait returns true once the source may go on, or false if the run was cancelled.
func (o *Output[T]) wait(ctx context.Context) bool {
	a := o.ahead
	if a == nil {
		return true
	}
	blocked := false
	for {
		ok, most := a.room()
		o.meter.setCapacity(most)
		if ok {
			return true
		}
		if !blocked {
			blocked = true
			o.from.clock.enter(Blocked, time.Now())
		}
		select {
		case <-a.taken:
		case <-ctx.Done():
			return false
		}
	}
}
