package rowcache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/kernel"
)

// TestThreadsMakeNoDifference checks that many threads leave the same states of rows and the same
// counters as one thread, also for rows whose keys occur several times, or so often that their
// state cannot count all pins.
func TestThreadsMakeNoDifference(t *testing.T) {
	defer kernel.SetThreads(0)
	for _, policy := range Policies() {
		var stats [2]Stats
		var states [2][]uint32
		for i, threads := range []int{1, 8} {
			kernel.SetThreads(threads)
			c := newCache(t, Options{Policy: policy, Words: 4, MaxBytes: 4 << 20})
			rng := rand.New(rand.NewPCG(1, 5))
			keys := make([]uint64, 20_000)
			for j := range keys {
				keys[j] = uint64(j)
			}
			hashes, refs := hashesOf(keys), make([]uint32, len(keys))
			if n, err := c.Insert(keys, hashes, nil, refs, false); n != len(keys) || err != nil {
				t.Fatal(n, err)
			}
			c.Release(refs, false)
			all := slices.Clone(refs)
			for pass := range int64(6) {
				for j := range keys {
					switch rng.IntN(4) {
					case 0:
						keys[j] = rng.Uint64N(20)
					case 1:
						keys[j] = uint64(len(keys)) + rng.Uint64N(100) // not cached
					default:
						keys[j] = rng.Uint64N(uint64(len(keys)))
					}
				}
				hashes = hashesOf(keys)
				if _, err := c.Announce(pass, keys, nil); err != nil {
					t.Fatal(err)
				}
				c.Find(pass, keys, hashes, refs)
				for j, ref := range refs {
					if found := ref != 0; found != (keys[j] < uint64(len(keys))) {
						t.Fatalf("%s, %d threads: key %d found: %t", policy, threads, keys[j], found)
					}
				}
				if err := c.Check(); err != nil {
					t.Fatalf("%s, %d threads, pass %d is pinned: %v", policy, threads, pass, err)
				}
				for _, ref := range all {
					states[i] = append(states[i], c.meta(ref).state)
				}
				if pass == 3 {
					c.BeginSave()
					c.Visit(all, func(int, Entry) Change { return Change{Clear: Old} })
				}
				c.Release(refs, pass%2 == 0)
				if err := c.Check(); err != nil {
					t.Fatalf("%s, %d threads, pass %d was released: %v", policy, threads, pass, err)
				}
			}
			stats[i] = c.Stats()
			if s := stats[i]; s.InFlight != 0 || s.Dirty == 0 {
				t.Errorf("%s, %d threads: %+v", policy, threads, s)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("%s: one thread gives %+v, several %+v", policy, stats[0], stats[1])
		}
		if !slices.Equal(states[0], states[1]) {
			t.Errorf("%s: several threads leave other states of rows", policy)
		}
	}
}
