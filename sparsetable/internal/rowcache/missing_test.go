package rowcache

import (
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// This test compares Missed with a map. Missed must report each key that an announced pass needs
// and that is not in the cache, and report it only once. A row that is then inserted early must
// stay until its pass.
func TestMissed(t *testing.T) {
	rng := testseed.Rand(t)
	const look, perPass = 20, 400
	c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: look, NoteMissing: true, MaxBytes: 4 << 20})
	if n, err := c.Lookahead(perPass); n != look || err != nil {
		t.Fatal(n, err)
	}
	var passes [][]uint64
	for range 200 {
		have := map[uint64]bool{}
		for len(have) < perPass {
			have[uint64(rng.IntN(1_000))] = true
		}
		var keys []uint64
		for k := range have {
			keys = append(keys, k)
		}
		passes = append(passes, keys)
	}
	next := func(k uint64, from, to int) int {
		for p := from; p < to; p++ {
			if slices.Contains(passes[p], k) {
				return p
			}
		}
		return -1
	}
	missing := map[uint64]int{} // by hash: the first announced pass that needs it
	announced, wrong := 0, 0
	for p := range passes {
		for ; announced < len(passes) && announced <= p+look; announced++ {
			told := map[uint64]bool{}
			noted, err := c.Announce(int64(announced), passes[announced], func(hashes []uint64) {
				for _, h := range hashes {
					if told[h] {
						t.Fatal("a key is told twice")
					}
					told[h] = true
				}
			})
			if !noted || err != nil {
				t.Fatal(noted, err)
			}
			refs := make([]uint32, perPass)
			hashes := hashesOf(passes[announced])
			c.Locate(passes[announced], hashes, refs)
			for i, h := range hashes {
				_, known := missing[h]
				if fresh := refs[i] == 0 && !known; fresh != told[h] {
					t.Fatalf("pass %d announced: key %d is told: %v, want %v", announced, passes[announced][i], told[h], fresh)
				}
				if refs[i] == 0 && !known {
					missing[h] = announced
				}
			}
		}
		var hashes []uint64
		var want []bool
		for h := range missing {
			hashes, want = append(hashes, h), append(want, true)
		}
		for range 500 {
			h := mix(uint64(3_000 + rng.IntN(1<<40)))
			hashes, want = append(hashes, h), append(want, false)
		}
		got := make([]bool, len(hashes))
		c.Missed(hashes, got)
		for i := range got {
			if want[i] && !got[i] {
				t.Fatalf("pass %d: a missing key is not known", p)
			}
			if got[i] && !want[i] {
				wrong++
			}
		}
		// Some come early, and are still there when others had to leave.
		var early []uint64
		for range 50 {
			q := passes[min(p+1+rng.IntN(look), announced-1)]
			if k := q[rng.IntN(len(q))]; c.cached(k) == 0 {
				c.Release(insert(t, c, []uint64{k}, 0), false)
				if next(k, p, announced) != p { // that one is being pulled next
					early = append(early, k)
				}
				delete(missing, mix(k))
			}
		}
		got = make([]bool, 1)
		for _, k := range early {
			if c.Missed([]uint64{mix(k)}, got) != 0 {
				t.Fatalf("pass %d: key %d is there, and counts as missing", p, k)
			}
			e := c.Look(c.cached(k))
			if !e.Needed {
				t.Fatalf("pass %d: key %d came early, and is not kept for pass %d", p, k, next(k, p, announced))
			}
		}
		refs := make([]uint32, perPass)
		c.Find(int64(p), passes[p], hashesOf(passes[p]), refs)
		if n, err := c.Insert(passes[p], hashesOf(passes[p]), nil, refs, false); err != nil {
			t.Fatal(n, err)
		}
		c.Release(refs, false)
		for _, h := range hashesOf(passes[p]) {
			delete(missing, h)
		}
		// Half of them leave, so that they can be missing again.
		for _, k := range passes[p][:perPass/2] {
			if ref := c.cached(k); ref != 0 && next(k, p+1, announced) < 0 {
				c.forget(ref)
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d keys that nobody announced count as missing", wrong)
	}
}

// cached returns the reference of a key, or 0 if its row is not in the cache.
func (c *Cache) cached(k uint64) uint32 {
	var ref [1]uint32
	c.Locate([]uint64{k}, []uint64{mix(k)}, ref[:])
	return ref[0]
}

// forget evicts one idle, clean row.
func (c *Cache) forget(ref uint32) {
	c.mu.Lock()
	m := c.meta(ref)
	c.mu.ranks.remove(m.state)
	m.state |= uint32(Taken)
	c.mu.taken++
	c.mu.Unlock()
	c.Drop([]uint32{ref})
}
