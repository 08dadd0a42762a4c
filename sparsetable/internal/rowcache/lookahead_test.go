package rowcache

import (
	"slices"
	"testing"
)

// announce announces a pass, which the window must accept.
func announce(t testing.TB, c *Cache, pass int64, keys []uint64) {
	t.Helper()
	if noted, err := c.Announce(pass, keys, nil); !noted || err != nil {
		t.Fatalf("pass %d of %d keys is noted: %v, %v", pass, len(keys), noted, err)
	}
}

// After Forget, rows that withdrawn passes needed are evicted by their uses, as if no pass had been
// announced, no keys of these passes count as missing, and passes may be announced again.
func TestForget(t *testing.T) {
	for _, look := range []int{20, 120} {
		c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: look, NoteMissing: true, MaxBytes: 4 << 20})
		c.Forget()
		if next := c.Next(); next != 0 {
			t.Fatalf("nothing was announced, and the next pass is %d", next)
		}
		c.Release(insert(t, c, count(0, 100), 500), false) // nobody needs them
		needed := count(1000, 100)
		c.Release(insert(t, c, needed, 1), false)
		next := int64(0)
		for round := range 3 {
			for p := range int64(look + 1) {
				announce(t, c, next+p, slices.Concat(needed, count(5000, 10)))
			}
			wanted := make([]bool, 10)
			if n := c.Missed(hashesOf(count(5000, 10)), wanted); n != 10 {
				t.Fatalf("round %d: %d of 10 keys that are missing are known", round, n)
			}
			use(t, c, next, needed)
			c.Forget()
			if got := c.Next(); got <= next+int64(look) {
				t.Fatalf("round %d: after pass %d come %d and on", round, next+int64(look), got)
			} else {
				next = got
			}
			if n := c.Missed(hashesOf(count(5000, 10)), wanted); n != 0 {
				t.Fatalf("round %d: %d keys are missing for passes that do not come", round, n)
			}
			c.Forget()
			if again := c.Next(); again < next {
				t.Fatalf("round %d: passes begin at %d, then at %d", round, next, again)
			} else {
				next = again
			}
			for _, k := range needed {
				if c.Look(c.cached(k)).Needed {
					t.Fatalf("round %d: key %d is needed by a pass that does not come", round, k)
				}
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if got := victimKeys(c, 100); !slices.Equal(got, needed) {
			t.Fatalf("%v left first, want those used least", got)
		}
	}
}

// After Expect, a row that was read early stays until the pass for which it was read, and until the
// first of several such passes, also where the window records nothing about keys that only one pass
// needs.
func TestExpect(t *testing.T) {
	c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: 10, MaxBytes: 4 << 20})
	early := count(1000, 40)
	for p := range int64(4) {
		announce(t, c, p, early[p*10:(p+1)*10])
	}
	c.Release(insert(t, c, count(0, 100), 500), false) // used often
	refs := insert(t, c, early, 1)
	passes := make([]int64, len(refs))
	for i := range passes {
		passes[i] = int64(i / 10)
	}
	c.Expect(refs, passes)
	c.Expect(refs[30:], slices.Repeat([]int64{8}, 10)) // later than what is known
	c.Expect([]uint32{0, refs[0]}, []int64{1, -1})     // nothing
	c.Release(refs, false)
	for p := range int64(4) {
		for i, key := range early {
			if got, want := c.Look(c.cached(key)).Needed, int64(i/10) >= p; got != want {
				t.Fatalf("before pass %d key %d of pass %d is needed: %v", p, key, i/10, got)
			}
		}
		use(t, c, p, early[p*10:(p+1)*10])
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	// Passes that were pulled, or lie too far ahead, need nothing.
	all := insert(t, c, count(5000, 2), 1)
	c.Expect(all, []int64{2, 1000})
	c.Release(all, false)
	for _, key := range count(5000, 2) {
		if c.Look(c.cached(key)).Needed {
			t.Errorf("key %d is needed", key)
		}
	}
}

// A window that was made for a small first pass is replaced when passes are larger.
func TestWindowGrowsWithPasses(t *testing.T) {
	const large, look = 27_000, 4
	c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: look, NoteMissing: true, MaxBytes: 64 << 20})
	announce(t, c, 0, count(0, 10))
	small := c.Stats().Window
	keys := func(p int64) []uint64 {
		return slices.Concat(count(1_000_000, large/2), count(uint64(2_000_000+p*large), large/2))
	}
	for p := int64(1); p <= look; p++ {
		announce(t, c, p, keys(p))
	}
	st := c.Stats()
	if st.NotAnnounced > large*look/100 || st.LookaheadPasses != look {
		t.Errorf("%d keys found no room, %d passes are looked ahead", st.NotAnnounced, st.LookaheadPasses)
	}
	if full := int64(float64(large*(look+1)) * (tableBytesPerKey + doorkeeperBytesPerKey + missingBytesPerKey)); st.Window < full || st.Window > full+full/50+3*pageBytes {
		t.Errorf("a window of %d bytes, want %d; it was %d", st.Window, full, small)
	}
	if err := c.Check(); err != nil { // the bytes among the rest
		t.Error(err)
	}
	// Somewhat larger passes do not cost what is known.
	announce(t, c, look, keys(look)[:large])
	if _, err := c.Announce(look, count(9_000_000, large*6/5), nil); err != nil || c.Stats().Window != st.Window {
		t.Errorf("a pass a fifth larger makes a window of %d bytes, from %d; %v", c.Stats().Window, st.Window, err)
	}
}

// If the budget limits the window, it looks less far ahead for larger passes, and if not even one
// pass fits, there is no window. There is one again for smaller passes.
func TestWindowOfHugePasses(t *testing.T) {
	c := newCache(t, Options{Policy: Lookahead, MaxBytes: 4 << 20})
	announce(t, c, 0, count(0, 3000))
	before := c.Stats()
	if _, err := c.Announce(1, count(0, 12_000), nil); err != nil {
		t.Fatal(err)
	}
	st := c.Stats()
	if st.Window > 4<<20/WindowShare || st.LookaheadPasses >= before.LookaheadPasses/2 || st.LookaheadPasses < before.LookaheadPasses/5 {
		t.Errorf("%d bytes for %d passes, then %d for %d", before.Window, before.LookaheadPasses, st.Window, st.LookaheadPasses)
	}
	if n, err := c.Lookahead(1 << 20); n != 0 || err != nil {
		t.Errorf("passes of a million keys are seen %d passes ahead, %v", n, err)
	}
	if noted, err := c.Announce(2, count(0, 1<<20), nil); noted || err != nil {
		t.Errorf("a million keys were noted: %v, %v", noted, err)
	}
	if st := c.Stats(); st.Window != 0 || st.NotAnnounced < 1<<20 {
		t.Errorf("a window of %d bytes, %d keys passed over", st.Window, st.NotAnnounced)
	}
	use(t, c, 2, nil)
	announce(t, c, 3, count(0, 3000))
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// A window that grows waits until rows have made room. Until then the old window is used.
func TestWindowGrowsInAFullCache(t *testing.T) {
	c := newCache(t, Options{Policy: Lookahead, MaxBytes: 4 << 20})
	announce(t, c, 0, count(0, 10))
	for k := uint64(0); ; k += 100 {
		refs := make([]uint32, 100)
		n, err := c.Insert(count(k, 100), hashesOf(count(k, 100)), nil, refs, false)
		if err != nil {
			t.Fatal(err)
		}
		c.Release(refs[:n], false)
		if n < 100 {
			break
		}
	}
	small := c.Stats().Window
	announce(t, c, 1, count(0, 4000))
	if st := c.Stats(); st.Window != small || st.Bytes > st.MaxBytes {
		t.Fatalf("a window of %d bytes, the rows had the budget; %d of %d bytes", st.Window, st.Bytes, st.MaxBytes)
	}
	for kept, err := c.Shrink(); !kept; kept, err = c.Shrink() {
		if err != nil {
			t.Fatal(err)
		}
		c.Drop(c.Victims(500, nil))
	}
	announce(t, c, 2, count(0, 4000))
	if st := c.Stats(); st.Window <= small || st.Bytes > st.MaxBytes {
		t.Fatalf("a window of %d bytes, %d before there was room; %d of %d bytes", st.Window, small, st.Bytes, st.MaxBytes)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// If passes are large, a window that records missing keys has as many of them as the cache has rows
// for. If these are too few for the elevator to go round all buckets, the window records no missing
// keys and looks as far ahead as it can.
func TestWindowOfLargePasses(t *testing.T) {
	for _, c := range []struct {
		wanted, keys int
		notes        bool
		low, high    int
	}{
		{0, 1_000, true, 100, 100},
		{0, 8_000, true, 50, 50},
		{0, 20_000, true, 18, 30},
		{0, 44_000, true, 6, 12},
		{0, 60_000, false, 20, 50},
		{50, 30_000, false, 50, 50}, // there is no room to note what 50 passes lack
		{12, 44_000, true, 12, 12},
	} {
		cache := newCache(t, Options{Policy: Lookahead, LookaheadPasses: c.wanted, NoteMissing: true, MaxBytes: 42 << 20, Words: 24})
		n, err := cache.Lookahead(c.keys)
		if err != nil || n < c.low || n > c.high || cache.NotesMissing() != c.notes {
			t.Errorf("%+v: %d passes of a cache of %d rows, missing keys are noted: %v; %v", c, n, cache.fitRowsLocked(), cache.NotesMissing(), err)
		}
	}
}

// The window looks only as far ahead as the rows fit that are needed in memory at the same time,
// and farther again once these rows are fewer.
func TestReachFitsRows(t *testing.T) {
	const perPass = 400
	for _, notes := range []bool{false, true} {
		c := newCache(t, Options{Policy: Lookahead, LookaheadPasses: 40, NoteMissing: notes, MaxBytes: 5 << 20, Words: 256})
		fit := c.fitRowsLocked()
		if fit > 5000 || fit < 4000 {
			t.Fatalf("%d rows fit", fit)
		}
		if notes { // beside those of passes that are being trained
			fit -= earlyPasses * perPass
		}
		var announced int64
		// Each key is needed by two passes, one after the other.
		keys := func(p int64) []uint64 { return count(uint64(p)*perPass/2, perPass) }
		for ; ; announced++ {
			noted, err := c.Announce(announced, keys(announced), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !noted {
				break
			}
		}
		st := c.Stats()
		if want := c.mu.win.wantedRows(); want > fit+2*perPass || want < fit/2 {
			t.Errorf("missing keys noted: %v: %d rows are wanted, %d fit", notes, want, fit)
		}
		if st.LookaheadPasses >= 30 || st.LookaheadPasses < 3 || st.NotAnnounced == 0 {
			t.Errorf("missing keys noted: %v: %d passes announced, %d are looked ahead", notes, announced, st.LookaheadPasses)
		}
		if n, err := c.Lookahead(perPass); n != st.LookaheadPasses || err != nil {
			t.Errorf("%d passes are asked for, %d noted, %v", n, st.LookaheadPasses, err)
		}
		for p := range announced {
			use(t, c, p, nil)
		}
		if n := c.Stats().LookaheadPasses; n != 40 {
			t.Errorf("with everything pulled %d passes are looked ahead", n)
		}
	}
}
