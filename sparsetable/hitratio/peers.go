package hitratio

import (
	"github.com/maypok86/otter/v2"
)

// lfu counts the hits of a cache of that many rows that drops the row with the fewest uses so far,
// in the cache or not, and, among those, the row that was used least recently.
func lfu(t *trace, rows int) (hits int64) {
	const top = 4096 // numbers of uses from here on are the same
	uses := make([]uint16, t.keys)
	cached := make([]bool, t.keys)
	// Lists by number of uses, oldest at the head; key k is node k, heads come behind.
	prev, next := make([]uint32, t.keys+top+1), make([]uint32, t.keys+top+1)
	for s := range top + 1 {
		h := uint32(t.keys + s)
		prev[h], next[h] = h, h
	}
	remove := func(k uint32) { next[prev[k]], prev[next[k]] = next[k], prev[k] }
	add := func(k uint32, uses int) {
		h := uint32(t.keys + uses)
		prev[k], next[k] = prev[h], h
		next[prev[k]], prev[h] = k, k
	}
	held, lowest := 0, 0
	for b := range t.batches {
		lo, hi := t.span(b)
		for _, k := range t.ids[lo:hi] {
			if cached[k] {
				remove(k)
				if b >= t.from {
					hits++
				}
			} else {
				if held == rows {
					for next[t.keys+lowest] == uint32(t.keys+lowest) {
						lowest++
					}
					victim := next[t.keys+lowest]
					remove(victim)
					cached[victim] = false
					held--
				}
				held++
				cached[k] = true
			}
			uses[k] = min(top, uses[k]+1)
			add(k, int(uses[k]))
			lowest = min(lowest, int(uses[k]))
		}
	}
	return hits
}

// tinyLFU counts the hits of W-TinyLFU (Einziger et al. 2017).
func tinyLFU(t *trace, rows int, _ int64) (hits int64, kept int, err error) {
	cache, err := otter.New(&otter.Options[uint32, struct{}]{
		MaximumSize: rows,
		Executor:    func(fn func()) { fn() }, // otherwise background work would run concurrently with the trace
	})
	if err != nil {
		return 0, 0, err
	}
	for b := range t.batches {
		lo, hi := t.span(b)
		for _, k := range t.ids[lo:hi] {
			if _, ok := cache.GetIfPresent(k); ok {
				if b >= t.from {
					hits++
				}
				continue
			}
			cache.Set(k, struct{}{})
		}
	}
	return hits, rows, nil
}
