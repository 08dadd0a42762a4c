package sparsetable_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"aibox/sparsetable"
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
	return spreadKey(s.next - 1), s.row, nil
}

func spreadKey(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }

// TestSSDSpaceAmplification loads many rows through a cache that holds a small
// part of them, and trains them: whoever writes, the bytes on disk stay within
// the allowed multiple of those in use, but for a step's, and within the directory's budget.
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
			opts := sparsetable.Options{Layout: l, FS: newSSDDisk(devices), MemoryBytes: sparsetable.SmallestSSD(l, o, 10_000) + 1<<20}
			tab, err := ssdKindWith(o).Open(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			// Beside what the limit leaves out of account there may be what one step
			// wrote, after which whoever took it compacts, and the buckets of a file
			// that is being emptied: of so small a table a sixth.
			worst := 0.0
			check := func(at string) {
				st := tab.Stats()
				total, live, slack := sparsetable.Space(tab)
				if live > 0 && total > slack {
					worst = max(worst, float64(total-slack)/float64(live))
				}
				if float64(total-slack) > c.limit*float64(live)+float64(live)/6 {
					t.Fatalf("%s: %d bytes on disk, %d in use, %d allowed beside", at, total, live, slack)
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
					keys[i] = spreadKey((from + i*97) % rows)
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
