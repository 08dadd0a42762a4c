package ssd_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

var carryLayout = sparsetable.Layout{ValueDim: 8, StateDim: 2}

const carryRows = 120_000

// outgrown opens a table of carryRows rows, where row i holds i, under a budget that holds only a
// part of them.
func outgrown(t *testing.T, budget int64) sparsetable.Table { return outgrownBy(t, "", budget) }

// outgrownBy is outgrown with a cache policy.
func outgrownBy(t *testing.T, policy string, budget int64) sparsetable.Table {
	t.Helper()
	return outgrownOn(t, newSSDDisk(1), policy, budget)
}

// outgrownOn is outgrownBy on a disk.
func outgrownOn(t *testing.T, disk *ssdDisk, policy string, budget int64) sparsetable.Table {
	t.Helper()
	tab, err := ssdKindWith(sparsetable.SSDOptions{Dirs: []string{"/ssd0"}, CachePolicy: policy}).Open(t.Context(), sparsetable.Options{Layout: carryLayout, FS: disk, MemoryBytes: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	})
	src := &rowsOf{layout: carryLayout, row: make([]float32, carryLayout.Words()), end: carryRows, every: carryRows, check: func(string) {}}
	if n, err := tab.Import(t.Context(), src); n != carryRows || err != nil {
		t.Fatalf("%d rows imported: %v", n, err)
	}
	return tab
}

// When a table larger than its cache is in its steady state, rows that leave the cache have been
// written into the buckets that their working sets carried, so hardly any bucket is read a second
// time.
func TestSSDCarry(t *testing.T) {
	const passes, batch = 600, 150
	rng := testseed.Rand(t)
	tab := outgrown(t, 8<<20)
	want := make([]float32, carryRows)
	for i := range want {
		want[i] = float32(i)
	}
	keys, at := make([]uint64, batch), make([]int, batch)
	before := tab.Stats()
	for range passes {
		for i, row := range rng.Perm(carryRows)[:batch] {
			keys[i], at[i] = tabletest.SpreadKey(row), row
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			row := ws.Row(i)
			if row[0] != want[at[i]] {
				t.Fatalf("row %d holds %v, want %v", at[i], row[0], want[at[i]])
			}
			row[0]++
			want[at[i]] = row[0]
		}
		ws.Release()
		tabletest.Until(t, "carried buckets", func() bool { return ssd.CarriesWaiting(tab) == 0 })
	}
	st := tab.Stats()
	evicted, reads := st.Evictions-before.Evictions, st.RewriteReads-before.RewriteReads
	t.Logf("%d buckets read by pulls, %d rows left, %d reads for writing", st.BucketReads-before.BucketReads, evicted, reads)
	if evicted < passes*batch/10 {
		t.Errorf("only %d rows left the cache", evicted)
	}
	if reads > evicted/10 {
		t.Errorf("%d reads for writing, %d rows left", reads, evicted)
	}
}

// The rows that an announced pass needs and that are not in the cache are in memory before the pass
// is pulled.
func TestSSDPrefetch(t *testing.T) {
	tab := outgrown(t, 12<<20)
	pass := func(n int) []uint64 {
		keys := make([]uint64, 300)
		for i := range keys {
			keys[i] = tabletest.SpreadKey((n*len(keys) + i) % carryRows)
		}
		return keys
	}
	for n := range 40 {
		keys := pass(n)
		before := tab.Stats()
		tab.Announce(keys)
		if n < 3 { // the cache makes room for what it is to know of passes
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
			if err != nil {
				t.Fatal(err)
			}
			ws.Release()
			continue
		}
		tabletest.Until(t, "the announced rows", func() bool { return tab.Stats().Prefetched-before.Prefetched == int64(len(keys)) })
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		if st := tab.Stats(); st.Hits-before.Hits != int64(len(keys)) {
			t.Errorf("pass %d: %d of %d rows in memory", n, st.Hits-before.Hits, len(keys))
		}
		for i := range keys {
			if got, want := ws.Row(i)[0], float32((n*len(keys)+i)%carryRows); got != want {
				t.Fatalf("pass %d: row %d holds %v, want %v", n, i, got, want)
			}
		}
		ws.Release()
	}
}

// A bucket is read only once for a pass, however many of the pass's keys are missing, and whether
// the Pull or the prefetcher reads it.
func TestSSDOneReadForABucket(t *testing.T) {
	tab := outgrown(t, 12<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	// read pulls ten passes. All that it announces it pulls, so that nothing is read for others.
	read := func(announce bool) (buckets, ahead int64) {
		before := tab.Stats()
		passes := make([][]uint64, 10)
		for n := range passes {
			for _, row := range rng.Perm(carryRows)[:2000] {
				passes[n] = append(passes[n], tabletest.SpreadKey(row))
			}
		}
		announced := 0
		for n, keys := range passes {
			for ; announce && announced < min(n+3, len(passes)); announced++ {
				tab.Announce(passes[announced])
			}
			if announce && n == 5 { // by now the cache has made room for what it is to know of passes
				tabletest.Until(t, "rows are read ahead", func() bool { return tab.Stats().Prefetched > before.Prefetched })
			}
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
			if err != nil {
				t.Fatal(err)
			}
			ws.Release()
		}
		after := tab.Stats()
		return after.BucketReads - before.BucketReads, after.Prefetched - before.Prefetched
	}
	read(true)
	alone, _ := read(false)
	announced, ahead := read(true)
	t.Logf("%d buckets read by Pulls, %d where %d rows came before", alone, announced, ahead)
	if announced > alone+alone/20 {
		t.Error("buckets are read more than once for a pass")
	}
	if ahead == 0 {
		t.Error("no row was read ahead")
	}
}

// Pulls that follow each other without a pause return the rows as they were last trained, although
// reads for the next passes are in flight and rows are being written.
func TestSSDDirect(t *testing.T) {
	const passes, ahead, size = 60, 6, 300
	tab := outgrown(t, 12<<20)
	rng := testseed.Rand(t)
	var keys [passes][]uint64
	var at [passes][]int
	want := map[int]float32{}
	for n := range keys {
		for _, row := range rng.Perm(carryRows)[:size] {
			keys[n], at[n] = append(keys[n], tabletest.SpreadKey(row)), append(at[n], row)
		}
	}
	told := 0
	for n := range keys {
		for ; told < min(n+ahead, passes); told++ {
			tab.Announce(keys[told])
		}
		if n == passes/2 { // however fast Pulls are, and however slow reading ahead
			tabletest.Until(t, "rows are read ahead", func() bool { return tab.Stats().Prefetched > 0 })
		}
		ws, err := tab.Pull(t.Context(), keys[n], sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range at[n] {
			if _, trained := want[row]; !trained {
				want[row] = float32(row)
			}
			if got := ws.Row(i)[0]; got != want[row] {
				t.Fatalf("pass %d: row %d holds %v, want %v", n, row, got, want[row])
			}
			want[row]++
			ws.Row(i)[0] = want[row]
		}
		ws.Release()
	}
	st := tab.Stats()
	t.Logf("%d of %d rows read ahead, %d buckets read", st.Prefetched, passes*size, st.BucketReads)
}

// A Pull that needs room takes it from clean rows while other goroutines write buckets.
func TestSSDRoomWithoutWriting(t *testing.T) {
	const batch = 500
	tab := outgrown(t, 8<<20)
	keys := make([]uint64, batch)
	pull := func(n int) error {
		for i := range keys {
			keys[i] = tabletest.SpreadKey((n*batch + i) % carryRows)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ws, err := tab.Pull(ctx, keys, sparsetable.PullLookup)
		if err == nil {
			ws.Release()
		}
		return err
	}
	n := 0
	for ; tab.Stats().Evictions < 20*batch; n++ {
		if err := pull(n); err != nil {
			t.Fatal(err)
		}
	}
	giveBack := ssd.HoldRewrite(tab)
	done := make(chan error, 1)
	go func() {
		for i := range 50 { // many times what the background keeps free
			if err := pull(n + i); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		giveBack()
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		giveBack()
		t.Fatal("a Pull waits while buckets are written, although there are clean rows to drop")
	}
}

// The background writer writes the carried buckets of all released sets before it does other work,
// so that the next Pulls can use their memory.
func TestSSDCarriesFirst(t *testing.T) {
	const sets, batch = 2, 100
	tab := outgrown(t, 8<<20)
	ssd.StopBackground(tab)
	before := tab.Stats()
	for n := range sets {
		keys := make([]uint64, batch)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(n*batch + i)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
	}
	if n := ssd.CarriesWaiting(tab); n == 0 || n > sets {
		t.Fatalf("the buckets of %d sets wait to be written, want some of %d", n, sets)
	}
	if err := ssd.WriteCarries(t.Context(), tab); err != nil {
		t.Fatal(err)
	}
	st := tab.Stats()
	if n, dirty := ssd.CarriesWaiting(tab), st.DirtyRows; n > 0 || dirty > sets*batch/10 {
		t.Errorf("the buckets of %d sets still wait to be written, and %d rows are dirty", n, dirty)
	}
	if n := st.RewriteReads - before.RewriteReads; n > 0 {
		t.Errorf("%d buckets were read a second time", n)
	}
}

// If only a few rows are clean, but no announced pass needs these, a Pull evicts them and writes
// nothing, unless the Pull before it created most of its rows.
func TestSSDLooseRowsLeave(t *testing.T) {
	const batch = 50
	var tab sparsetable.Table
	next := 0
	pull := func(mode sparsetable.PullMode) {
		t.Helper()
		keys := make([]uint64, batch)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(next + i)
		}
		next += batch
		ws, err := tab.Pull(t.Context(), keys, mode)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
	}
	open := func() {
		tab, next = outgrownBy(t, "lookahead", 8<<20), 0
		ssd.StopBackground(tab)
	}
	open()
	for tab.Stats().Evictions == 0 {
		pull(sparsetable.PullLookup)
	}
	fit := next // the cache holds about so many rows
	open()
	before := tab.Stats()
	for next < fit*9/10 {
		pull(sparsetable.PullCreate)
	}
	for tab.Stats().Evictions == 0 {
		pull(sparsetable.PullLookup)
	}
	st := tab.Stats()
	if next > carryRows || st.CacheRows-st.DirtyRows >= st.CacheRows/8 && st.RewriteReads == before.RewriteReads {
		t.Fatalf("%d of %d rows are clean, and %d of %d were pulled: want fewer", st.CacheRows-st.DirtyRows, st.CacheRows, next, carryRows)
	}
	if st.RewriteReads > before.RewriteReads {
		t.Errorf("%d buckets were read to be written, although no announced pass needs the clean rows", st.RewriteReads-before.RewriteReads)
	}
	next = carryRows // from here on, the table does not have the rows
	for range 3 * (fit/64/batch + 1) {
		pull(sparsetable.PullCreate)
	}
	if tab.Stats().FlushedSlots == before.FlushedSlots {
		t.Error("no bucket was written while rows were created")
	}
}
