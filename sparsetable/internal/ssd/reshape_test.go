package ssd_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

var reshapeLayout = sparsetable.Layout{ValueDim: 30, StateDim: 10} // 8 rows a slot

func openReshaped(t *testing.T, disk *ssdDisk, budget int64) sparsetable.Table {
	t.Helper()
	tab, err := ssdKind("history", 1).Open(t.Context(), sparsetable.Options{Layout: reshapeLayout, FS: disk, MemoryBytes: budget})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// checkFilled checks that the table has rows first to first+n-1 of fillRows, by pulling some of
// them and scanning all.
func checkFilled(t *testing.T, tab sparsetable.Table, first, n int) {
	t.Helper()
	want := map[uint64]float32{}
	for i := first; i < first+n; i++ {
		want[tabletest.SpreadKey(i)] = float32(i)
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	keys := make([]uint64, 0, 300)
	for range 300 {
		keys = append(keys, tabletest.SpreadKey(first+rng.IntN(n)), tabletest.SpreadKey(first+n+rng.IntN(n)))
	}
	slicesUnique(&keys)
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if v, found := want[k]; ws.Found(i) != found || ws.Row(i)[0] != v {
			t.Fatalf("key %#x: found %v, %v; want %v, %v", k, ws.Found(i), ws.Row(i)[0], found, v)
		}
	}
	ws.Release()
	rows := 0
	err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
		rows++
		if v, ok := want[key]; !ok || row[0] != v {
			t.Fatalf("key %#x holds %v, want %v", key, row[0], v)
		}
		return nil
	})
	if err != nil || rows != n {
		t.Fatalf("%d rows, want %d: %v", rows, n, err)
	}
	if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
		t.Fatalf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
	}
}

func slicesUnique(keys *[]uint64) {
	seen, n := map[uint64]bool{}, 0
	for _, k := range *keys {
		if !seen[k] {
			seen[k] = true
			(*keys)[n] = k
			n++
		}
	}
	*keys = (*keys)[:n]
}

// A table that has lost most of its rows merges slots and gives the index's memory to the cache,
// also while a snapshot is being written and after the table was opened again. It then grows again.
func TestSSDShrinks(t *testing.T) {
	const rows, left = 40_000, 3_000
	disk := newSSDDisk(1)
	budget := smallest(reshapeLayout, sparsetable.SSDOptions{}, 2000) + 1<<20
	tab := openReshaped(t, disk, budget)
	fillRows(t, tab, 0, rows)
	if err := ssd.Reshape(t.Context(), tab); err != nil {
		t.Fatal(err)
	}
	full := tab.Stats()
	if full.Slots < rows/10 {
		t.Fatalf("%d rows in %d slots", full.Slots, full.Rows)
	}
	// Of all but the first rows it is long ago that they were trained.
	for from := 0; from < left; from += 500 {
		keys := make([]uint64, 500)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(from + i)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			reshapeLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 2, LastSeen: 100})
		}
		ws.Release()
	}
	if n, err := tab.Expire(t.Context(), sparsetable.ExpiryRule{Today: 100, UnseenDays: 50}); n != rows-left || err != nil {
		t.Fatalf("%d rows expired: %v", n, err)
	}
	pending, err := tab.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ssd.Reshape(t.Context(), tab); err != nil {
		t.Fatal(err)
	}
	first, err := pending.Wait()
	if err != nil {
		t.Fatal(err)
	}
	st := tab.Stats()
	if st.Slots*4 > full.Slots || st.Merges == 0 || st.IndexBytes*3 > full.IndexBytes*2 {
		t.Errorf("%d slots after %d merges, index of %d bytes; before %d slots, %d bytes", st.Slots, st.Merges, st.IndexBytes, full.Slots, full.IndexBytes)
	}
	checkFilled(t, tab, 0, left)
	second := tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	// Both snapshots are of the same rows, of which one had more slots.
	for _, id := range []uint64{first.ID, second.ID} {
		tab, err := ssdKind("history", 1).Open(t.Context(), sparsetable.Options{FS: disk, MemoryBytes: budget, SnapshotID: id, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		checkFilled(t, tab, 0, left)
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tab = openReshaped(t, disk, budget)
	fillRows(t, tab, left, left)
	checkFilled(t, tab, 0, 2*left)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}

// A table that is opened with less memory drops filters and merges slots, and one that is opened
// with more memory splits them again.
func TestSSDOtherBudget(t *testing.T) {
	const rows = 60_000
	disk := newSSDDisk(1)
	small := smallest(reshapeLayout, sparsetable.SSDOptions{}, 1000) + 64<<10
	var last sparsetable.Stats
	for i, budget := range []int64{24 << 20, small, 24 << 20} {
		tab := openReshaped(t, disk, budget)
		if i == 0 {
			fillRows(t, tab, 0, rows)
		}
		if i == 1 { // the difference that ten times the rows would make
			ssd.SetShape(tab, 24, 30, 100, 0)
		}
		if err := ssd.Reshape(t.Context(), tab); err != nil {
			t.Fatal(err)
		}
		st := tab.Stats()
		t.Logf("budget %d: %d slots, index of %d bytes, filters of them %d, %d splits, %d merges", budget, st.Slots, st.IndexBytes, st.FilterBytes, st.Splits, st.Merges)
		switch i {
		case 1:
			if st.FilterBytes >= last.FilterBytes || st.IndexBytes >= last.IndexBytes*2/3 || st.Merges == 0 || st.Slots > rows/16 {
				t.Errorf("index of %d bytes, filters of them %d; with more memory %d and %d", st.IndexBytes, st.FilterBytes, last.IndexBytes, last.FilterBytes)
			}
		case 2:
			if st.Slots < rows/10 || st.Splits == 0 {
				t.Errorf("%d slots after %d splits", st.Slots, st.Splits)
			}
		}
		last = st
		checkFilled(t, tab, 0, rows)
		tabletest.Commit(t, tab, nil)
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

var needs = regexp.MustCompile(`needs a budget of (\d+) bytes`)

// needOf returns the budget that an ErrBudget names.
func needOf(t *testing.T, err error) int64 {
	t.Helper()
	m := needs.FindStringSubmatch(err.Error())
	if !errors.Is(err, sparsetable.ErrBudget) || m == nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A table that outgrows its budget first drops its filters, then lets buckets grow, and finally
// refuses new keys, long before a bucket is too large. Existing rows can still be used.
func TestSSDOutgrowsBudget(t *testing.T) {
	disk := newSSDDisk(1)
	tab := openReshaped(t, disk, smallest(reshapeLayout, sparsetable.SSDOptions{}, 3000)+128<<10)
	// As if the index's memory were that of a table a hundred times larger.
	ssd.SetShape(tab, 2, 4, 8, 120<<10)
	var err error
	rows, filters, slots := 0, map[int64]bool{}, int64(0)
	for err == nil && rows < 200_000 {
		keys := make([]uint64, 500)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(rows + i)
		}
		var ws *sparsetable.WorkingSet
		if ws, err = tab.Pull(t.Context(), keys, sparsetable.PullCreate); err != nil {
			break
		}
		for i := range keys {
			ws.Row(i)[0] = float32(rows + i)
			reshapeLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
		rows += len(keys)
		st := tab.Stats()
		if st.MemoryBytes > st.BudgetBytes {
			t.Fatalf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
		}
		filters[st.FilterBytes/max(1, st.Slots)] = true
		slots = st.Slots
	}
	if !errors.Is(err, sparsetable.ErrBudget) {
		t.Fatalf("%d rows in %d slots: %v", rows, slots, err)
	}
	t.Logf("%d rows in %d slots: %v", rows, slots, err)
	if mean := float64(rows) / float64(slots); mean < 7 || mean > 12 {
		t.Errorf("%g rows a slot", mean)
	}
	if len(filters) < 2 {
		t.Errorf("filters: %v", filters)
	}
	if need := needOf(t, err); need <= tab.Stats().BudgetBytes {
		t.Errorf("%d bytes are said to be needed", need)
	}
	checkFilled(t, tab, 0, rows)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}
