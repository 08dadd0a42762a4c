package hitratio

import (
	"math"
	"math/rand"
)

// trace has the unique keys of every batch, as ranks: 0 is the most popular key.
type trace struct {
	keys    int
	batches int      // of both phases
	from    int      // first batch whose hits count
	ids     []uint32 // batch after batch
	lookups []uint8  // of each key in its batch; 255 stands for 255 or more
	ends    []int    // end of each batch in ids
	next    []uint16 // batch of the key's next use, or never
}

const never = math.MaxUint16

func newTrace(c config) *trace {
	t := &trace{keys: c.keys, batches: 2 * c.batches, from: c.batches}
	zipf := rand.NewZipf(rand.New(rand.NewSource(c.seed)), c.s, 1, uint64(c.keys-1))
	at := make([]int32, c.keys) // position in ids where the key was last put
	for i := range at {
		at[i] = -1
	}
	for range t.batches {
		begin := len(t.ids)
		for range c.lookups {
			k := uint32(zipf.Uint64())
			if i := int(at[k]); i >= begin {
				t.lookups[i] = uint8(min(255, int(t.lookups[i])+1))
				continue
			}
			at[k] = int32(len(t.ids))
			t.ids = append(t.ids, k)
			t.lookups = append(t.lookups, 1)
		}
		t.ends = append(t.ends, len(t.ids))
	}
	t.next = make([]uint16, len(t.ids))
	coming := make([]uint16, c.keys)
	for i := range coming {
		coming[i] = never
	}
	for b := t.batches - 1; b >= 0; b-- {
		lo, hi := t.span(b)
		for i := lo; i < hi; i++ {
			k := t.ids[i]
			t.next[i], coming[k] = coming[k], uint16(b)
		}
	}
	return t
}

// span returns the range of batch b in ids.
func (t *trace) span(b int) (lo, hi int) {
	if b > 0 {
		lo = t.ends[b-1]
	}
	return lo, t.ends[b]
}

// counted is the number of pulls that can be hits.
func (t *trace) counted() int {
	lo, _ := t.span(t.from)
	return len(t.ids) - lo
}
