package ssd_test

import (
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDPullsGrow checks that Pulls of more and more keys end. Every other Pull takes its list of
// references from a set that was released. That list has room for more keys than the lists of
// Pulls. One of the latter serves as the hash table in which duplicate keys are found; when it was
// full, the search for a free place never ended.
func TestSSDPullsGrow(t *testing.T) {
	tab := outgrown(t, 10<<20)
	next := 0
	pull := func(n int) *sparsetable.WorkingSet {
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = tabletest.SpreadKey((next + i) % carryRows) // none of them is in memory
		}
		next += n
		done := make(chan struct{})
		time.AfterFunc(time.Minute, func() {
			select {
			case <-done:
			default:
				panic("a Pull does not end")
			}
		})
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		if err != nil {
			t.Fatal(err)
		}
		close(done)
		return ws
	}
	first := pull(1500) // it keeps its references
	for _, n := range []int{1593, 1692, 2304, 2448, 3072, 3264, 4096} {
		pull(n).Release()
	}
	first.Release()
}
