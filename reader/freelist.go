package reader

import "sync"

// freeList keeps memory for reuse. It is last in, first out, because the memory returned last is
// most likely still in the caches.
type freeList[T any] struct {
	most int // things that are kept

	mu    sync.Mutex
	there []T
}

// get returns something that was given back; ok is false if there is nothing.
func (l *freeList[T]) get() (v T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.there) - 1
	if last < 0 {
		return v, false
	}
	v, l.there[last] = l.there[last], v
	l.there = l.there[:last]
	return v, true
}

// put gives something back.
func (l *freeList[T]) put(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.there) < l.most {
		l.there = append(l.there, v)
	}
}
