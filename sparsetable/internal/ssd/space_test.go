package ssd_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// rowsOf yields trained rows of scattered keys and calls check now and then.
type rowsOf struct {
	layout sparsetable.Layout
	row    []float32
	next   int
	end    int
	every  int
	check  func(at string)
}

func (s *rowsOf) Next() (uint64, []float32, error) {
	if s.next == s.end {
		return 0, nil, io.EOF
	}
	if s.next%s.every == 0 {
		s.check(fmt.Sprintf("import of row %d", s.next))
	}
	s.row[0] = float32(s.next)
	s.layout.SetStats(s.row, sparsetable.RowStats{Count: 1})
	s.next++
	return tabletest.SpreadKey(s.next - 1), s.row, nil
}

// TestSSDSpaceAmplification loads many rows through a cache that holds a small part of them, and
// trains them. Whichever part of the table writes, the bytes on disk must stay within the allowed
// multiple of those in use, and within the directory's budget.
func TestSSDSpaceAmplification(t *testing.T) {
	const rows, batch = 200_000, 2000
	l := sparsetable.Layout{ValueDim: 8, StateDim: 2}
	for _, c := range []struct {
		name    string
		devices int
		limit   float64
		budget  int64
	}{
		{"one directory", 1, 2, 0},
		{"two directories", 2, 2, 0},
		{"a small budget", 1, 100, 24 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			devices := c.devices
			if devices > 1 && testing.Short() {
				t.Skip("the long one")
			}
			o := sparsetable.SSDOptions{MaxSpaceAmplification: c.limit, DirBudgetBytes: c.budget}
			for i := range devices {
				o.Dirs = append(o.Dirs, fmt.Sprintf("/ssd%d", i))
			}
			opts := sparsetable.Options{Layout: l, FS: newSSDDisk(devices), MemoryBytes: smallest(l, o, 10_000) + 1<<20}
			tab, err := ssdKindWith(o).Open(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			check := func(at string) {
				st := tab.Stats()
				total, live, allowed := ssd.Space(tab)
				worst = max(worst, st.SpaceAmplification)
				if float64(total) > c.limit*float64(live) && total > live+allowed {
					t.Fatalf("%s: %d bytes on disk, %d in use, %d always allowed", at, total, live, allowed)
				}
				if c.budget > 0 && st.DiskBytes > c.budget {
					t.Fatalf("%s: %d bytes on disk, the budget is %d", at, st.DiskBytes, c.budget)
				}
			}
			src := &rowsOf{layout: l, row: make([]float32, l.Words()), end: rows, every: 1000, check: check}
			if n, err := tab.Import(t.Context(), src); n != rows || err != nil {
				t.Fatalf("%d rows imported: %v", n, err)
			}
			check("after the import")
			rng := rand.New(rand.NewPCG(1, 2))
			keys := make([]uint64, batch)
			for pass := range 25 {
				from := rng.IntN(rows)
				for i := range keys { // all over the slots
					keys[i] = tabletest.SpreadKey((from + i*97) % rows)
				}
				ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
				if err != nil {
					t.Fatal(err)
				}
				for i := range keys {
					if want := float32((from + i*97) % rows); ws.Row(i)[0] != want {
						t.Fatalf("pass %d: key %#x holds %v, want %v", pass, keys[i], ws.Row(i)[0], want)
					}
					st := l.Stats(ws.Row(i))
					st.Count++
					l.SetStats(ws.Row(i), st)
				}
				ws.Release()
				check(fmt.Sprintf("pass %d", pass))
			}
			st := tab.Stats()
			t.Logf("at most %.2f; at the end %+v", worst, st)
			if st.Rows < rows {
				t.Errorf("%d rows, want %d", st.Rows, rows)
			}
			if st.CacheRows*5 > rows || st.CompactedBytes == 0 {
				t.Errorf("%d rows in the cache, %d bytes compacted: this tests nothing", st.CacheRows, st.CompactedBytes)
			}
			if err := tab.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// watchSpace checks the disk space of a table continually, also in the middle of steps, until the
// returned function is called: it must never exceed the limit. The function returns the largest
// share of the allowed space that was seen.
func watchSpace(t *testing.T, tab sparsetable.Table, limit float64) (end func() (most float64)) {
	stop, done := make(chan struct{}), make(chan struct{})
	most := 0.0
	go func() {
		defer close(done)
		for {
			total, live, always := ssd.Space(tab)
			allowed := max(limit*float64(live), float64(live+always))
			if part := float64(total) / allowed; part > most {
				if most = part; part > 1 {
					t.Errorf("%d bytes on disk, %d in use, %d always allowed: more than %g times", total, live, always, limit)
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	end = sync.OnceValue(func() float64 {
		close(stop)
		<-done
		return most
	})
	t.Cleanup(func() { end() })
	return end
}

// TestSSDSpaceLimit trains tables of many shapes in many ways. The space amplification that Stats
// reports must never exceed its limit, except for the few MiB that are always allowed, which matter
// only to small tables.
func TestSSDSpaceLimit(t *testing.T) {
	first := testseed.Of(t)
	seeds := []uint64{first}
	if _, given := testseed.Given(t); !given {
		// Of the first, the cache shrinks much while the table is small and its limit low.
		seeds = []uint64{380301041967043212}
		for i := uint64(0); i < 7 && !testing.Short(); i++ {
			seeds = append(seeds, first+i)
		}
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 15))
		l := sparsetable.Layout{ValueDim: []int{8, 16, 64, 200}[rng.IntN(4)], StateDim: rng.IntN(3)}
		rows := (16<<20 + rng.IntN(32<<20)) / (l.Bytes() + 8)
		o := sparsetable.SSDOptions{MaxSpaceAmplification: []float64{1.3, 1.7, 2, 2, 2, 3}[rng.IntN(6)]}
		policies := sparsetable.CachePolicies()
		o.CachePolicy = policies[rng.IntN(len(policies))]
		for i := range 1 + rng.IntN(3) {
			o.Dirs = append(o.Dirs, fmt.Sprintf("/ssd%d", i))
		}
		batch := rows/100 + rng.IntN(rows/20)
		opts := sparsetable.Options{
			Layout: l, FS: newSSDDisk(len(o.Dirs)),
			MemoryBytes: smallest(l, o, int64(3*batch)) + int64(rng.IntN(4<<20)),
		}
		what := fmt.Sprintf("seed %d, %d rows of %+v, %+v, %d bytes of memory", seed, rows, l, o, opts.MemoryBytes)
		tab, err := ssdKindWith(o).Open(t.Context(), opts)
		if err != nil {
			t.Fatal(what, err)
		}
		watched := watchSpace(t, tab, o.MaxSpaceAmplification)
		worst := 0.0
		check := func(at string) {
			t.Helper()
			st := tab.Stats()
			_, _, allowed := ssd.Space(tab)
			worst = max(worst, st.SpaceAmplification)
			if dead := (st.SpaceAmplification - 1) * float64(st.DiskLiveBytes); st.SpaceAmplification > o.MaxSpaceAmplification && dead > float64(allowed) {
				t.Errorf("%s, %s: amplification %.3f of %d bytes", what, at, st.SpaceAmplification, st.DiskLiveBytes)
			}
		}
		if rng.IntN(2) == 0 { // else rows come as they are trained
			src := &rowsOf{layout: l, row: make([]float32, l.Words()), end: rows, every: 1000, check: check}
			if _, err := tab.Import(t.Context(), src); err != nil {
				t.Fatal(what, err)
			}
		}
		skewed := rng.IntN(2) == 0
		for pass, trained := 0, 0; trained < 2*rows || pass < 20; pass++ {
			seen := map[int]bool{}
			var keys []uint64
			for range batch {
				i := rng.IntN(rows)
				if skewed {
					i = int(float64(rows) * math.Pow(rng.Float64(), 3))
				}
				if !seen[i] {
					seen[i] = true
					keys = append(keys, tabletest.SpreadKey(i))
				}
			}
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
			if err != nil {
				t.Fatal(what, err)
			}
			for i := range keys {
				st := l.Stats(ws.Row(i))
				st.Count++
				l.SetStats(ws.Row(i), st)
			}
			check(fmt.Sprintf("pass %d, pinned", pass))
			ws.Release()
			check(fmt.Sprintf("pass %d", pass))
			trained += len(keys)
			switch rng.IntN(40) {
			case 0:
				tabletest.Commit(t, tab, nil)
				infos, err := tab.Snapshots()
				if err != nil {
					t.Fatal(what, err)
				}
				for _, s := range infos[:len(infos)-1] {
					if err := tab.DropSnapshot(s.ID); err != nil {
						t.Fatal(what, err)
					}
				}
			case 1:
				if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
					t.Fatal(what, err)
				}
			}
			check(fmt.Sprintf("after pass %d", pass))
		}
		st := tab.Stats()
		t.Logf("%s: at most %.3f, %.0f %% of what is allowed; %d bytes in use, %d written, %d of them compacted",
			what, worst, 100*watched(), st.DiskLiveBytes, st.WrittenBytes, st.CompactedBytes)
		if err := tab.Close(); err != nil {
			t.Fatal(what, err)
		}
	}
}
