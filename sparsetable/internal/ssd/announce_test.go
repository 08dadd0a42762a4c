package ssd_test

import (
	"slices"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// announcedKeys returns the keys of pass n. The passes go through all rows in turn.
func announcedKeys(n int) []uint64 {
	const perPass = 300
	keys := make([]uint64, perPass)
	for i := range keys {
		keys[i] = tabletest.SpreadKey((n*perPass + i) % carryRows)
	}
	return keys
}

// pullAndRelease pulls a pass.
func pullAndRelease(t *testing.T, tab sparsetable.Table, keys []uint64) {
	t.Helper()
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	ws.Release()
}

// Announced passes that are not pulled can be withdrawn. Then no pass is announced any more, the
// buckets that were read for them take no memory, the caller may change their keys, and passes that
// are announced later are read ahead as before.
func TestForgetAnnounced(t *testing.T) {
	tab := outgrown(t, 12<<20)
	for n := range 3 { // the cache makes room for what it is to know of passes
		tab.Announce(announcedKeys(n))
		pullAndRelease(t, tab, announcedKeys(n))
	}
	at := 3
	for round := range 3 {
		const passes = 4
		before := tab.Stats()
		var keys [][]uint64
		for n := range passes {
			keys = append(keys, announcedKeys(at+n))
			tab.Announce(keys[n])
		}
		if st := tab.Stats(); st.AnnouncedPasses != passes || st.AnnouncedKeys-before.AnnouncedKeys != int64(passes*len(keys[0])) || st.LookaheadPasses < passes {
			t.Fatalf("round %d: %d passes are announced, %d more keys than before, looks %d ahead", round, st.AnnouncedPasses, st.AnnouncedKeys-before.AnnouncedKeys, st.LookaheadPasses)
		}
		tabletest.Until(t, "rows of the next pass", func() bool { return tab.Stats().Prefetched > before.Prefetched })
		pullAndRelease(t, tab, keys[0])
		tab.ForgetAnnounced()
		if n := tab.Stats().AnnouncedPasses; n != 0 {
			t.Fatalf("round %d: %d passes are still announced, although all were withdrawn", round, n)
		}
		for _, k := range keys {
			clear(k) // the race detector would see whoever still reads them
		}
		after := tab.Stats().Prefetched
		pullAndRelease(t, tab, announcedKeys(at+1)) // unannounced by now
		if st := tab.Stats(); st.Prefetched != after {
			t.Fatalf("round %d: %d rows were read ahead although no pass is announced", round, st.Prefetched-after)
		}
		if err := ssd.CheckIndex(tab); err != nil {
			t.Fatal(err)
		}
		at += passes
	}
	tab.ForgetAnnounced()
}

// If more passes are announced than the table's list can hold, and none of them is pulled, other
// passes can be announced after these are withdrawn.
func TestAnnouncedWithoutEnd(t *testing.T) {
	tab := outgrown(t, 12<<20)
	pullAndRelease(t, tab, announcedKeys(0))
	for n := range 400 {
		tab.Announce(announcedKeys(n)[:5])
	}
	if n := tab.Stats().AnnouncedPasses; n > 256 {
		t.Errorf("%d passes are on the list", n)
	}
	tab.ForgetAnnounced()
	keys := announcedKeys(7)
	tab.Announce(keys)
	if n := tab.Stats().AnnouncedPasses; n != 1 {
		t.Fatalf("%d passes are announced, want 1", n)
	}
	pullAndRelease(t, tab, slices.Clone(keys))
	if n := tab.Stats().AnnouncedPasses; n != 0 {
		t.Errorf("%d passes are still announced, although all were pulled", n)
	}
}

// After a small first pass, the table looks as far ahead as it would without it, and asks for as
// many passes as its window can hold.
func TestAnnouncedPassesGrow(t *testing.T) {
	tab := outgrown(t, 64<<20)
	tab.Announce(announcedKeys(0)[:10])
	pullAndRelease(t, tab, announcedKeys(0)[:10])
	const perPass = 27_000
	large := func(n int) []uint64 {
		keys := make([]uint64, perPass)
		for i := range keys {
			keys[i] = uint64(n*perPass*9/10+i+1) * 0x9e3779b97f4a7c15
		}
		return keys
	}
	passes := 0
	for ; passes <= tab.Lookahead(perPass); passes++ {
		tab.Announce(large(passes))
	}
	st := tab.Stats()
	if passes < 8 || st.AnnouncedPasses != int64(passes) || st.LookaheadPasses > int64(passes) || st.NotAnnouncedKeys > perPass {
		t.Errorf("%d passes announced of %d, %d keys found no room, looks %d ahead", st.AnnouncedPasses, passes, st.NotAnnouncedKeys, st.LookaheadPasses)
	}
	if st.MemoryBytes > st.BudgetBytes {
		t.Errorf("%d bytes, budget %d", st.MemoryBytes, st.BudgetBytes)
	}
}
