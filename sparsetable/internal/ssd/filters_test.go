package ssd_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// announcedPasses trains passes that are announced some passes ahead, each while the previous one
// is still pinned. A part of the keys of each pass is new. It returns the statistics at the end.
func announcedPasses(t *testing.T, o sparsetable.Options, size, passes int) (sparsetable.Stats, error) {
	t.Helper()
	o.FS = newSSDDisk(1)
	tab, err := ssdKindWith(o.SSD).Open(t.Context(), o)
	if err != nil {
		return sparsetable.Stats{}, err
	}
	rng := rand.New(rand.NewPCG(13, 13))
	list := make([][]uint64, passes)
	for i := range list {
		seen := map[int]bool{}
		n := size - size/32 + rng.IntN(size/16) // no two have the same number
		for len(list[i]) < n {
			// The younger a key, the more often it comes; a third is new.
			all := size + (i+1)*size/3
			k := all - 1 - int(float64(all)*math.Pow(rng.Float64(), 3))
			if !seen[k] {
				seen[k] = true
				list[i] = append(list[i], tabletest.SpreadKey(k))
			}
		}
	}
	var last *sparsetable.WorkingSet
	announced := 0
	for i, keys := range list {
		for announced < passes && announced < i+1+max(1, tab.Lookahead(size)) {
			tab.Announce(list[announced])
			announced++
		}
		var ws *sparsetable.WorkingSet
		ws, err = tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil && last != nil { // as a trainer does
			last.Release()
			last = nil
			ws, err = tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		}
		if err != nil {
			err = fmt.Errorf("pass %d: %w", i, err)
			break
		}
		for j := range keys {
			o.Layout.SetStats(ws.Row(j), sparsetable.RowStats{Count: 1})
		}
		if last != nil {
			last.Release()
		}
		last = ws
		if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
			t.Errorf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
		}
	}
	if last != nil {
		last.Release()
	}
	st := tab.Stats()
	if e := tab.Close(); e != nil {
		t.Error(e)
	}
	return st, err
}

// TestSSDFiltersStay checks that under budgets that hold little more than the rows of two passes,
// filters have their 4 bits a key with every cache policy, and new keys cost few reads.
func TestSSDFiltersStay(t *testing.T) {
	const size, passes = 6000, 40
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	budgets := []int64{128 << 10, 256 << 10, 512 << 10, 2 << 20}
	if testing.Short() {
		budgets = budgets[:1]
	}
	for _, policy := range sparsetable.CachePolicies() {
		for _, extra := range budgets {
			t.Run(fmt.Sprint(policy, extra>>10), func(t *testing.T) {
				o := sparsetable.SSDOptions{CachePolicy: policy, Dirs: []string{"/ssd0"}}
				opts := sparsetable.Options{Layout: l, SSD: o, MemoryBytes: smallest(l, o, 2*size) + extra}
				st, err := announcedPasses(t, opts, size, passes)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d bytes: %.1f bits a key, %d slots, %d bucket reads, false positives %.3f, %d passes ahead", opts.MemoryBytes, st.FilterBitsPerKey, st.Slots, st.BucketReads, st.FalsePositiveRate(), st.LookaheadPasses)
				if st.FilterBitsPerKey < 4 || st.FalsePositiveRate() > .25 {
					t.Errorf("filters have %.1f bits a key, of %d absent keys %d cost a read", st.FilterBitsPerKey, st.FilterNegatives+st.FalsePositives, st.FalsePositives)
				}
			})
		}
	}
}

// TestSSDFiltersGone checks that if a budget has no room for filters, the log and the statistics
// say so, except for tables that have so little memory only for a while.
func TestSSDFiltersGone(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: writes hundreds of thousands of rows; not in short mode")
	}
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprint(brief), func(t *testing.T) { filtersGone(t, brief) })
	}
}

func filtersGone(t *testing.T, brief bool) {
	l := sparsetable.Layout{ValueDim: 1}
	o := sparsetable.SSDOptions{Dirs: []string{"/ssd0"}, Brief: brief}
	var log bytes.Buffer
	opts := sparsetable.Options{
		Layout: l, SSD: o, MemoryBytes: smallest(l, o, 0) + 64<<10, FS: newSSDDisk(1), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	tab, err := ssdKindWith(o).Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 400_000
	src := &rowsOf{layout: l, row: make([]float32, l.Words()), end: rows, every: rows, check: func(string) {}}
	_, err = tab.Import(t.Context(), src)
	st := tab.Stats()
	if e := tab.Close(); e != nil {
		t.Error(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Contains(log.String(), "no room for Bloom filters"); st.FilterBitsPerKey > 0 || said == brief {
		t.Errorf("filters have %g bits a key; the log: %s", st.FilterBitsPerKey, log.String())
	}
}

// TestSSDDivisiblePulls checks Pulls that the caller can divide. Under budgets that hold the rows
// of a whole pass only without filters, the filters are not dropped for such Pulls, and the parts
// of a pass fit.
func TestSSDDivisiblePulls(t *testing.T) {
	dropped := 0
	budgets := []int64{0, 64 << 10, 128 << 10, 192 << 10}
	if testing.Short() {
		budgets = budgets[:1]
	}
	for _, extra := range budgets {
		const divisible = sparsetable.PullCreate | sparsetable.PullDivisible
		whole, err := newPasses(t, extra, sparsetable.PullCreate)
		if err != nil && !errors.Is(err, sparsetable.ErrBudget) {
			t.Fatal(err)
		}
		if whole.FilterBitsPerKey < 4 {
			dropped++
		}
		parts, err := newPasses(t, extra, divisible)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d KiB: %.1f bits a key and %d bucket reads, with divisible Pulls %.1f and %d", extra>>10, whole.FilterBitsPerKey, whole.BucketReads, parts.FilterBitsPerKey, parts.BucketReads)
		if parts.FilterBitsPerKey < 4 {
			t.Errorf("%d KiB more: filters have %.1f bits a key", extra>>10, parts.FilterBitsPerKey)
		}
	}
	if dropped == 0 {
		t.Error("filters stay under all these budgets, so the test shows nothing")
	}
}

// newPasses pulls passes of new keys, one after the other, under a budget that is extra bytes
// larger than the smallest one under which the table can hold a pass. Divisible passes are pulled
// in parts if the table asks for that.
func newPasses(t *testing.T, extra int64, mode sparsetable.PullMode) (sparsetable.Stats, error) {
	t.Helper()
	const passes, size = 6, 4000
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	o := sparsetable.SSDOptions{Dirs: []string{"/ssd0"}}
	opts := sparsetable.Options{Layout: l, SSD: o, MemoryBytes: smallest(l, o, size) + extra, FS: newSSDDisk(1)}
	tab, err := ssdKindWith(o).Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}()
	for pass := range passes {
		keys := make([]uint64, size)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(pass*size + i)
		}
		for most := size; len(keys) > 0; {
			n := min(most, len(keys))
			ws, err := tab.Pull(t.Context(), keys[:n], mode)
			var budget *sparsetable.BudgetError
			if errors.As(err, &budget) && mode&sparsetable.PullDivisible != 0 && 0 < budget.FitRows && budget.FitRows < n {
				most = budget.FitRows
				continue
			}
			if err != nil {
				return tab.Stats(), err
			}
			for i := range n {
				l.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
			}
			ws.Release()
			keys = keys[n:]
		}
	}
	return tab.Stats(), nil
}
