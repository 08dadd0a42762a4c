package tabletest

import (
	"slices"
	"testing"

	"aibox/sparsetable"
)

// testDuplicates pulls keys that occur several times in one pull, with their rows in different
// places: all positions of a key must refer to one row, and no update may be lost.
func testDuplicates(t *testing.T, k Kind) {
	o := options(k.disk())
	tab := mustOpen(t, k, o)
	defer func() { mustClose(t, tab) }()
	keys := sequence(1, 1, 3000)
	repeated := slices.Concat(keys, keys[100:200], keys[150:160], keys[:1], keys[len(keys)-1:])
	rows := int64(len(keys))
	updates := float32(0)
	check := func(where string) {
		t.Helper()
		// Each position adds one to its row.
		ws := mustPull(t, tab, repeated, sparsetable.PullCreate)
		for i := range repeated {
			touch(layout, ws.Row(i), ws.Row(i)[0]+1)
		}
		updates++
		for i, key := range repeated {
			if ws.Row(i) == nil || &ws.Row(i)[0] != &ws.Row(slices.Index(repeated, key))[0] {
				t.Fatalf("%s: position %d holds another row than the first with key %d", where, i, key)
			}
		}
		ws.Release()
		times := map[uint64]float32{}
		for _, key := range repeated {
			times[key]++
		}
		for _, mode := range []sparsetable.PullMode{sparsetable.PullCreate, sparsetable.PullLookup} {
			ws := mustPull(t, tab, repeated, mode)
			for i, key := range repeated {
				first := make([]float32, layout.Words())
				initRow(key, first)
				if got, want := ws.Row(i)[0], first[0]+updates*times[key]; !ws.Found(i) || got != want {
					t.Fatalf("%s: key %d holds %g, want %g", where, key, got, want)
				}
			}
			ws.Release()
		}
		if st := tab.Stats(); st.Rows != rows {
			t.Errorf("%s: %d rows, want %d", where, st.Rows, rows)
		}
	}
	check("new rows")
	check("rows in memory")
	if f, ok := tab.(sparsetable.Flusher); ok {
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustSave(t, tab, "")
	mustClose(t, tab)
	tab = mustOpen(t, k, o)
	check("rows saved")
	absent := sequence(1<<40, 1, 10)
	ws := mustPull(t, tab, slices.Concat(absent, absent), sparsetable.PullLookup)
	for i := range ws.Len() {
		if ws.Found(i) {
			t.Errorf("key %d is found", absent[i%len(absent)])
		}
	}
	ws.Release()
	// Placeholders, which lookups do not find.
	ws = mustPull(t, tab, slices.Concat(absent, absent), sparsetable.PullCreate)
	ws.Release()
	ws = mustPull(t, tab, slices.Concat(absent, absent), sparsetable.PullLookup)
	for i := range ws.Len() {
		if ws.Found(i) {
			t.Errorf("placeholder %d is found", absent[i%len(absent)])
		}
	}
	ws.Release()
}

// testManyPins pins the same rows with more working sets than an 8-bit counter can count.
func testManyPins(t *testing.T, k Kind) {
	tab := mustOpen(t, k, options(k.disk()))
	defer func() { mustClose(t, tab) }()
	const n = 600
	keys := sequence(1, 1, 100)
	var sets []*sparsetable.WorkingSet
	for i := range n {
		own := uint64(1000 + i)
		sets = append(sets, mustPull(t, tab, append(slices.Clone(keys), own), sparsetable.PullCreate))
		touch(layout, sets[i].Row(i%len(keys)), float32(i))
	}
	mustSave(t, tab, "")
	for i := range sets {
		ws := sets[(i*7)%n] // in another order
		touch(layout, ws.Row(len(keys)), float32(i))
		ws.Release()
	}
	if st := tab.Stats(); st.PinnedSets != 0 {
		t.Errorf("%d sets are pinned", st.PinnedSets)
	}
	ws := mustPull(t, tab, keys, sparsetable.PullLookup)
	for i := range keys {
		if got, want := ws.Row(i)[0], float32(n-len(keys)+i); got != want {
			t.Errorf("row %d holds %g, want %g", i, got, want)
		}
	}
	ws.Release()
	// No row is pinned any more, so all can be dropped.
	if dropped, err := tab.Expire(t.Context(), sparsetable.ExpiryRule{MinShow: 1}); err != nil || dropped != n+int64(len(keys)) {
		t.Errorf("%d rows dropped, %v", dropped, err)
	}
}

// testPullModes pulls new keys with every flag that can be added to PullCreate, while another set
// is pinned.
func testPullModes(t *testing.T, k Kind) {
	tab := mustOpen(t, k, options(k.disk()))
	defer func() { mustClose(t, tab) }()
	first := mustPull(t, tab, sequence(1, 1, 100), sparsetable.PullCreate)
	defer first.Release()
	flags := []sparsetable.PullMode{sparsetable.PullDivisible, sparsetable.PullAhead, sparsetable.PullPatient}
	for some := range 1 << len(flags) {
		mode := sparsetable.PullCreate
		for i, flag := range flags {
			if some>>i&1 != 0 {
				mode |= flag
			}
		}
		keys := sequence(uint64(1000*(some+1)), 1, 100)
		ws := mustPull(t, tab, keys, mode)
		ws.Begin()
		for i := range keys {
			if !ws.Found(i) {
				t.Fatalf("mode %d: key %d was not created", mode, keys[i])
			}
			touch(layout, ws.Row(i), 1)
		}
		ws.Release()
	}
	if st := tab.Stats(); st.Rows != 100+100<<len(flags) {
		t.Errorf("%d rows", st.Rows)
	}
	// Nor does a flag of PullLookup make an untrained row found.
	keys := append(sequence(2000, 1, 3), 1<<40)
	mustPull(t, tab, keys[3:], sparsetable.PullCreate).Release()
	for _, flag := range append(flags, 0) {
		ws := mustPull(t, tab, keys, sparsetable.PullLookup|flag)
		for i := range keys {
			if ws.Found(i) != (i < 3) {
				t.Errorf("with %d added to a lookup, key %d is found: %v", flag, keys[i], ws.Found(i))
			}
		}
		ws.Release()
	}
}

// testPullTrained looks up rows that another goroutine updates at the same time, under the race
// detector if it is enabled.
func testPullTrained(t *testing.T, k Kind) {
	tab := mustOpen(t, k, options(k.disk()))
	defer func() { mustClose(t, tab) }()
	keys := sequence(1, 1, 3000)
	ws := mustPull(t, tab, keys, sparsetable.PullCreate)
	for i := range keys {
		touch(layout, ws.Row(i), 1)
	}
	updated := make(chan struct{})
	go func() {
		defer close(updated)
		for n := range 50 {
			for i := range keys {
				touch(layout, ws.Row(i), float32(1+n))
			}
		}
	}()
	some := append(slices.Clone(keys[:100]), 1<<40)
	sets := []*sparsetable.WorkingSet{}
	for range 20 {
		sets = append(sets, mustPull(t, tab, some, sparsetable.PullLookup|sparsetable.PullTrained))
	}
	<-updated
	for _, s := range sets {
		for i := range some {
			if s.Found(i) != (i < 100) || s.Found(i) && s.Row(i)[0] != ws.Row(i)[0] {
				t.Fatalf("key %d is found: %v, with %v", some[i], s.Found(i), s.Row(i))
			}
		}
		s.Release()
	}
	ws.Release()
}
