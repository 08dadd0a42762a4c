package rowcache

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// This test does at once what a table does with its cache: one goroutine announces and pulls, one
// trains and releases, one takes victims, and one visits slots. Each row has its key in all words
// while it is pinned, and no addition of the trainer may be lost. The race detector sees rows,
// because their memory is on the heap under it.
func TestConcurrentRoles(t *testing.T) {
	for _, policy := range Policies() {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			const seed, words = 9, 8
			passes := int64(400)
			if testing.Short() {
				passes = 100
			}
			c := newCache(t, Options{Policy: policy, Words: words, MaxBytes: 400 << 10})
			type set struct {
				keys []uint64
				refs []uint32
			}
			sets := make(chan set, 2)
			var done atomic.Bool
			var wg sync.WaitGroup

			wg.Go(func() { // pulls
				defer close(sets)
				rng := rand.New(rand.NewPCG(seed, 1))
				zipf := rand.NewZipf(rng, 1.1, 1, 20_000)
				pass := func() (keys []uint64) {
					for have := map[uint64]bool{}; len(keys) < 200; {
						if k := zipf.Uint64(); !have[k] {
							have[k] = true
							keys = append(keys, k)
						}
					}
					return keys
				}
				var ahead [][]uint64
				for p := range passes {
					for len(ahead) < 5 {
						keys := pass()
						if _, err := c.Announce(p+int64(len(ahead)), keys, nil); err != nil {
							t.Error(err)
						}
						ahead = append(ahead, keys)
					}
					keys := ahead[0]
					ahead = ahead[1:]
					refs, hashes := make([]uint32, len(keys)), hashesOf(keys)
					missing := len(keys) - c.Find(p, keys, hashes, refs)
					fresh := append([]uint32(nil), refs...)
					for missing > 0 {
						n, err := c.Insert(keys, hashes, nil, refs, false)
						if err != nil {
							t.Error(err)
							return
						}
						missing -= n
						if missing > 0 {
							evictClean(c, missing)
						}
					}
					slabs, shift, mask := c.Slabs()
					for i, ref := range refs {
						if fresh[i] == 0 {
							at := int(ref&mask) * words
							for w := range words {
								slabs[ref>>shift][at+w] = float32(keys[i])
							}
						}
					}
					sets <- set{keys, refs}
				}
			})
			wg.Go(func() { // trains
				defer done.Store(true)
				for s := range sets {
					slabs, shift, mask := c.Slabs()
					for i, ref := range s.refs {
						at := int(ref&mask) * words
						row := slabs[ref>>shift][at : at+words]
						for w := range row {
							if row[w] != float32(s.keys[i]) {
								t.Errorf("row of key %d holds %v", s.keys[i], row)
								return
							}
							row[w] = float32(s.keys[i])
						}
					}
					c.Release(s.refs, true)
				}
			})
			wg.Go(func() { // writes back
				for !done.Load() {
					evictClean(c, 50)
				}
			})
			wg.Go(func() { // visits
				rng := rand.New(rand.NewPCG(seed, 2))
				for !done.Load() {
					c.ForEachOfSlot(rng.Uint64()&63, 63, func(e Entry) Change {
						if e.Pins == 0 && e.Row[0] != float32(e.Key) {
							t.Errorf("row of key %d holds %v", e.Key, e.Row)
						}
						return Change{}
					})
					if s := c.Stats(); s.Bytes > s.MaxBytes {
						t.Errorf("%d bytes, budget %d", s.Bytes, s.MaxBytes)
					}
				}
			})
			wg.Wait()
			if s := c.Stats(); s.InFlight != 0 || s.Idle+s.Taken != s.Rows {
				t.Errorf("rows are still pinned: %+v", s)
			}
		})
	}
}

// evictClean evicts up to n clean rows.
func evictClean(c *Cache, n int) {
	v := c.Victims(n, nil)
	c.Change(v, Change{Clear: Dirty})
	c.Drop(v)
}

// In the steady state, no memory is allocated.
func TestNoGarbage(t *testing.T) {
	for _, policy := range Policies() {
		c := newCache(t, Options{Policy: policy, MaxBytes: 2 << 20})
		const n = 2000
		keys, hashes := make([]uint64, n), make([]uint64, n)
		refs, victims := make([]uint32, n), make([]uint32, 0, n)
		next, pass := uint64(0), int64(0)
		turn := func() {
			for i := range keys {
				if i%2 == 0 {
					next++
					keys[i] = next
				} else {
					keys[i] = uint64(1<<40 + i)
				}
				hashes[i] = mix(keys[i])
			}
			if _, err := c.Announce(pass, keys, nil); err != nil {
				t.Fatal(err)
			}
			missing := n - c.Find(pass, keys, hashes, refs)
			pass++
			for missing > 0 {
				added, err := c.Insert(keys, hashes, nil, refs, false)
				if err != nil {
					t.Fatal(err)
				}
				if missing -= added; missing > 0 {
					victims = c.Victims(missing, victims[:0])
					c.Change(victims, Change{Clear: Dirty})
					c.Drop(victims)
				}
			}
			c.Release(refs, true)
		}
		for range 30 {
			turn()
		}
		if a := testing.AllocsPerRun(20, turn); a > 0 {
			t.Errorf("%s: a pass allocates %g times", policy, a)
		}
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Policy: "lru", LookaheadPasses: -1})
	if err == nil {
		t.Fatal("no error")
	}
	want := "rowcache: rows of 0 words: want 1 to 65536\n" +
		"rowcache: unknown policy \"lru\": want one of lru_lfu, history, lookahead\n" +
		"rowcache: no hash function\n" +
		"rowcache: -1 passes to look ahead: want 0 (as many as fit) or more"
	if err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	o := Options{Words: 20, Policy: LRULFU, Hash: mix}
	if _, err := New(o); err == nil {
		t.Fatal("no error without a budget")
	}
	for o.MaxBytes = 1; ; o.MaxBytes += o.MaxBytes / 8 * 2 {
		o.MaxBytes++
		c, err := New(o)
		if err != nil {
			continue
		}
		// The smallest budgets hold something.
		if rows := insert(t, c, []uint64{1}, 0); rows[0] == 0 {
			t.Errorf("a budget of %d holds no row", o.MaxBytes)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if o.MaxBytes > 1<<20 {
			return
		}
	}
}
