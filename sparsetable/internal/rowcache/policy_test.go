package rowcache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func newCache(t testing.TB, o Options) *Cache {
	t.Helper()
	if o.Hash == nil {
		o.Hash = mix
	}
	if o.Words == 0 {
		o.Words = 20
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// insert adds keys, as rows that were used that often before, and returns their references, which
// are pinned.
func insert(t testing.TB, c *Cache, keys []uint64, used uint32) []uint32 {
	t.Helper()
	refs, all := make([]uint32, len(keys)), make([]uint32, len(keys))
	for i := range all {
		all[i] = used
	}
	if n, err := c.Insert(keys, hashesOf(keys), all, refs, false); n != len(keys) || err != nil {
		t.Fatalf("%d of %d rows inserted, %v", n, len(keys), err)
	}
	return refs
}

// use pulls and releases keys as the given pass.
func use(t testing.TB, c *Cache, pass int64, keys []uint64) {
	t.Helper()
	refs := make([]uint32, len(keys))
	if n := c.Find(pass, keys, hashesOf(keys), refs); n != len(keys) {
		t.Fatalf("pass %d finds %d of %d rows", pass, n, len(keys))
	}
	c.Release(refs, false)
}

func count(from, n uint64) (keys []uint64) {
	for k := range n {
		keys = append(keys, from+k)
	}
	return keys
}

// victimKeys evicts n rows and returns their keys.
func victimKeys(c *Cache, n int) (keys []uint64) {
	v := c.Victims(n, nil)
	for _, ref := range v {
		keys = append(keys, c.Look(ref).Key)
	}
	c.Drop(v)
	slices.Sort(keys)
	return keys
}

func TestLeastUsedLeaveFirst(t *testing.T) {
	for _, policy := range Policies() {
		c := newCache(t, Options{Policy: policy})
		// Group g holds 100 keys that are used 3g + 1 times, counted exactly.
		const groups = exactUses/3 - 1
		for g := range uint64(groups) {
			c.Release(insert(t, c, count(1000*g, 100), 0), false)
			for range 3 * g {
				use(t, c, -1, count(1000*g, 100))
			}
		}
		for g := range uint64(groups) {
			if got, want := victimKeys(c, 100), count(1000*g, 100); !slices.Equal(got, want) {
				t.Fatalf("%s: the %d-th hundred to leave is %v, want %v", policy, g, got, want)
			}
		}
		if got := victimKeys(c, 1); got != nil {
			t.Fatalf("%s: an empty cache gives %v", policy, got)
		}
	}
}

// A row that was evicted and inserted again keeps its count of uses, if the policy has a history.
func TestHistory(t *testing.T) {
	for _, policy := range Policies() {
		c := newCache(t, Options{Policy: policy})
		c.Release(insert(t, c, count(0, 100), 50), false)
		c.Release(insert(t, c, count(1000, 100), 0), false)
		use(t, c, -1, count(1000, 100))
		want := count(1000, 100)
		if policy == LRULFU {
			want = count(0, 100)
		}
		if got := victimKeys(c, 100); !slices.Equal(got, want) {
			t.Errorf("%s: %v left first, want %v", policy, got, want)
		}
	}
}

// Rows that were used often, but long ago, are evicted before rows that are used now.
func TestAging(t *testing.T) {
	for _, policy := range Policies() {
		c := newCache(t, Options{Policy: policy})
		c.Release(insert(t, c, count(0, 10), 400), false)
		for policy == LRULFU && c.Look(1).Uses < 300 {
			use(t, c, -1, count(0, 10))
		}
		now := count(1000, 100)
		c.Release(insert(t, c, now, 0), false)
		for range 7 {
			for range 20 {
				use(t, c, -1, now)
			}
			c.mu.pinsLeft = 0 // as after many more uses
			use(t, c, -1, now)
			c.Keep(c.Victims(110, nil)) // the sweep that lets rows age
		}
		want := count(0, 10)
		if policy == LRULFU {
			want = nil // as the paper has it
		}
		var got []uint64
		for _, k := range victimKeys(c, 10) {
			if k < 10 {
				got = append(got, k)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: of the rows out of use %v left first, want %v", policy, got, want)
		}
	}
}

// Rows that announced passes need stay as long as there are others, whatever their uses. Then those
// that are needed last are evicted first.
func TestLookaheadOrder(t *testing.T) {
	c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: 20})
	c.Release(insert(t, c, count(0, 100), 10_000), false) // nobody needs them
	for p := range uint64(10) {
		c.Release(insert(t, c, count(1000+100*p, 100), 0), false)
	}
	for p := range uint64(10) {
		// Pass p needs its own hundred and those before it: the first
		// announcement counts.
		keys := count(1000, 100*(p+1))
		if noted, err := c.Announce(int64(p), keys, nil); !noted || err != nil {
			t.Fatal(noted, err)
		}
	}
	if got, want := victimKeys(c, 100), count(0, 100); !slices.Equal(got, want) {
		t.Fatalf("%v left first, want %v", got, want)
	}
	for p := uint64(9); p > 0; p-- {
		if got, want := victimKeys(c, 100), count(1000+100*p, 100); !slices.Equal(got, want) {
			t.Fatalf("%v left, want those of pass %d, %v", got, p, want)
		}
	}
}

// A row is no longer kept for a pass that was pulled without it, and a row that one pass has pulled
// is kept for the next pass that needs it.
func TestLookaheadMovesOn(t *testing.T) {
	c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: 8})
	first, second := count(0, 50), count(1000, 50)
	c.Release(insert(t, c, first, 0), false)
	c.Release(insert(t, c, second, 0), false)
	for p := range int64(3) {
		keys := first
		if p == 1 {
			keys = second
		}
		if noted, err := c.Announce(p, keys, nil); !noted || err != nil {
			t.Fatal(noted, err)
		}
	}
	use(t, c, 0, first)
	for range 3 {
		use(t, c, -1, second) // used more often, but beside the order
	}
	use(t, c, 1, nil) // pass 1 changed its mind, and is over with the next
	use(t, c, 2, first[:25])
	if got, want := victimKeys(c, 75), slices.Concat(first[:25], second); !slices.Equal(got, want) {
		t.Fatalf("%v left, want %v: pass 2 is still at the others", got, want)
	}
	use(t, c, 2, first[25:])
	use(t, c, 3, nil)
	if got := victimKeys(c, 25); !slices.Equal(got, first[25:]) {
		t.Fatalf("%v left, want %v", got, first[25:])
	}
}

// The window may be wrong about the pass that needs a key next, but only in that it names an
// earlier one, and rarely.
func TestWindowAgainstModel(t *testing.T) {
	const seed, passes, perPass = 3, 120, 600
	t.Logf("seed %d", seed)
	for _, look := range []int{1, 5, 50, 120} {
		rng := rand.New(rand.NewPCG(seed, uint64(look)))
		c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: look, MaxBytes: 8 << 20})
		if n, err := c.Lookahead(perPass); n != look || err != nil {
			t.Fatalf("looks %d passes ahead, want %d, %v", n, look, err)
		}
		zipf := rand.NewZipf(rng, 1.1, 1, 100_000)
		var all [][]uint64
		for range passes {
			var keys []uint64
			for have := map[uint64]bool{}; len(keys) < perPass; {
				if k := zipf.Uint64(); !have[k] {
					have[k] = true
					keys = append(keys, k)
				}
			}
			all = append(all, keys)
		}
		needs := func(p int64, k uint64) bool { return p < passes && slices.Contains(all[p], k) }
		per := c.mu.win.perGrp
		announced, wrong, asked := int64(0), 0, 0
		for p := range int64(passes) {
			for ; announced < passes && announced <= p+int64(look); announced++ {
				keys := all[announced]
				if noted, err := c.Announce(announced, keys, nil); !noted || err != nil {
					t.Fatal(p, announced, noted, err)
				}
			}
			refs := make([]uint32, perPass)
			hashes := hashesOf(all[p])
			c.Find(p, all[p], hashes, refs)
			if n, err := c.Insert(all[p], hashes, nil, refs, false); err != nil {
				t.Fatal(n, err)
			}
			for i := 0; i < perPass; i += 7 {
				k := all[p][i]
				want := uint32(0)
				for q := (p/per + 1) * per; q < announced; q++ {
					if needs(q, k) {
						want = uint32(q/per - p/per)
						break
					}
				}
				got := uint32(0)
				if a := c.mu.win.ahead(group(c.meta(refs[i]).state)); a != past {
					got = uint32(a)
				}
				asked++
				if got != want {
					wrong++
				}
				if want != 0 && (got == 0 || got > want) && c.mu.stats.NotAnnounced == 0 {
					t.Fatalf("look %d: pass %d: key %d is needed %d groups ahead, the window says %d", look, p, k, want, got)
				}
			}
			c.Release(refs, false)
		}
		if lost := c.mu.stats.NotAnnounced; lost*50 > passes*perPass {
			t.Errorf("look %d: %d of %d keys found no room", look, lost, passes*perPass)
		}
		if wrong*25 > asked {
			t.Errorf("look %d: %d of %d answers were wrong", look, wrong, asked)
		}
	}
}

func TestUsesCounter(t *testing.T) {
	for u := range uint32(maxUses + 1) {
		if got := encodeUses(decodeUses(u)); got != u {
			t.Errorf("counter %d stands for %d, which encodes to %d", u, decodeUses(u), got)
		}
		if u > 0 && decodeUses(u) <= decodeUses(u-1) {
			t.Errorf("counters %d and %d stand for %d and %d", u-1, u, decodeUses(u-1), decodeUses(u))
		}
		if h := halveUses(u); decodeUses(h) > decodeUses(u)/2+1 || decodeUses(h)+1 < decodeUses(u)/2-decodeUses(u)/32 {
			t.Errorf("half of %d is %d", decodeUses(u), decodeUses(h))
		}
	}
	if got := encodeUses(1 << 31); got != maxUses {
		t.Errorf("2^31 encodes to %d", got)
	}
	const seed, counters, n = 5, 400, 20_000
	rng := rand.New(rand.NewPCG(seed, 0))
	sum := 0.0
	for range counters {
		u := uint32(0)
		for range n {
			u = countUse(u, rng.Uint64())
		}
		sum += float64(decodeUses(u))
	}
	if mean := sum / counters / n; mean < 0.97 || mean > 1.03 {
		t.Errorf("seed %d: counters of %d uses show %.3f of them", seed, n, mean)
	}
}

// Of the clean rows, the least used ones are evicted, however few they are among dirty ones, and
// none that is used more than most rows. The counters must be right when idle rows become clean or
// dirty.
func TestCleanVictims(t *testing.T) {
	for _, policy := range Policies() {
		c := newCache(t, Options{Policy: policy, MaxBytes: 4 << 20})
		const groups, size = 8, 2000 // group g is used g + 1 times
		refs := map[uint64]uint32{}
		for i := range uint64(groups) {
			g := groups - 1 - i // those used most lie first
			keys := count(10000*g, size)
			r := insert(t, c, keys, 0)
			c.Release(r, true)
			for range g {
				use(t, c, 0, keys)
			}
			for i, k := range keys {
				refs[k] = r[i]
			}
		}
		if v := c.CleanVictims(10, nil); len(v) > 0 {
			t.Fatalf("%s: all are dirty, %d are clean victims", policy, len(v))
		}
		// Of each group 100 are clean; of the last, which is used more than any
		// policy lets go, all.
		for k, ref := range refs {
			if g := k / 10000; k%10000 < 100 || g == groups-1 {
				c.Change([]uint32{ref}, Change{Clear: Dirty})
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		share := uint64(groups / int(c.looseShare()))
		last := max(share, 1) - 1 // the last group that clean ones are taken of
		for g := range last + 1 {
			v := c.CleanVictims(100, nil)
			if len(v) != 100 {
				t.Fatalf("%s: %d victims of group %d, want 100", policy, len(v), g)
			}
			for _, ref := range v {
				switch e := c.Look(ref); {
				case e.Flags&Dirty != 0:
					t.Fatalf("%s: key %d is dirty", policy, e.Key)
				case e.Key/10000 > g+2: // one idle row in 64 may leave as if it were next
					t.Fatalf("%s: key %d leaves while group %d has clean rows", policy, e.Key, g)
				}
			}
			c.Keep(v)
			for _, k := range count(10000*g, 100) {
				c.Change([]uint32{refs[k]}, Change{Set: Dirty})
			}
		}
		if v := c.CleanVictims(100, nil); len(v) > 0 {
			t.Errorf("%s: %d rows of the upper groups leave, key %d first", policy, len(v), c.Look(v[0]).Key)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
}
