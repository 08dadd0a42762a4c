package ssd_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDStatsRows checks that no row is counted twice, neither while the most used rows are being
// restored nor while rows are read from their buckets.
func TestSSDStatsRows(t *testing.T) {
	const rows = 60_000
	devices := []blockio.Device{blocktest.New(blocktest.Options{Dir: "/ssd0"})}
	fs := vfs.NewMem()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: "/ssd0", Layout: sparsetable.Layout{ValueDim: 16}, MemoryBytes: 14 << 20}
	o.SSD.HotBytes = 2 << 20
	tab, err := openOn(t.Context(), o, devices, fs)
	if err != nil {
		t.Fatal(err)
	}
	if err := trainSpread(t.Context(), tab, 0, rows); err != nil {
		t.Fatal(err)
	}
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}

	if tab, err = openOn(t.Context(), o, devices, fs); err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	pulled := make(chan struct{})
	var wrong, looks int64
	var watching sync.WaitGroup
	watching.Go(func() {
		for ; ; looks++ {
			if n := tab.Stats().Rows; n != rows && wrong == 0 {
				wrong = n
			}
			select {
			case <-pulled:
				return
			default:
			}
		}
	})
	ssd.WaitRestored(tab)
	for from := 0; from < rows; from += 2000 {
		keys := make([]uint64, 2000)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(from + i)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		if err != nil {
			t.Error(err)
			break
		}
		ws.Release()
	}
	close(pulled)
	watching.Wait()
	if wrong != 0 {
		t.Errorf("a table of %d rows said in one of %d looks that it has %d", rows, looks, wrong)
	}
	t.Logf("%d looks", looks)
}

// TestSSDStatsReads checks that each read of a bucket file is counted once, with its bytes, whether
// a Pull, the elevator, a large import or a rewrite of buckets makes it.
func TestSSDStatsReads(t *testing.T) {
	const rows, batch, ahead, passes = 60_000, 500, 8, 60
	dev := blocktest.New(blocktest.Options{Dir: "/ssd0"})
	var reads, read atomic.Int64
	dev.Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Read && strings.HasSuffix(op.Name, ".bucket") {
			reads.Add(1)
			read.Add(int64(op.Bytes))
		}
		return blocktest.Fault{}
	})
	o := sparsetable.Options{Dir: "/ssd0", Layout: carryLayout, MemoryBytes: 6 << 20}
	o.SSD.CachePolicy, o.SSD.MaxSpaceAmplification = "lookahead", 100 // compaction reads whole files, which is not counted
	tab, err := openOn(t.Context(), o, []blockio.Device{dev}, vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var last sparsetable.Stats
	compare := func(what string, done func(sparsetable.Stats) int64) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) { // the background may be at work
			st := tab.Stats()
			if st.DeviceReads+st.RewriteReads == reads.Load() && st.ReadBytes+st.RewriteReadBytes == read.Load() {
				if done(st) == done(last) {
					t.Errorf("%s: there was nothing of the kind", what)
				}
				last = st
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d reads of %d bytes are counted for pulls, %d of %d for others, and there were %d of %d",
					what, st.DeviceReads, st.ReadBytes, st.RewriteReads, st.RewriteReadBytes, reads.Load(), read.Load())
			}
		}
	}
	for range 2 { // the second import reads the buckets of the first
		src := &rowsOf{layout: carryLayout, row: make([]float32, carryLayout.Words()), end: rows, every: rows, check: func(string) {}}
		if n, err := tab.Import(t.Context(), src); n != rows || err != nil {
			t.Fatalf("%d rows imported: %v", n, err)
		}
	}
	compare("imports", func(st sparsetable.Stats) int64 { return st.RewriteReads })
	var keys [][]uint64
	for n := range passes {
		keys = append(keys, make([]uint64, batch))
		for i := range keys[n] {
			keys[n][i] = tabletest.SpreadKey((n*batch + i) * 7919 % rows)
		}
	}
	for n, announced := 0, 0; n < passes; n++ {
		for ; announced < min(passes, n+ahead); announced++ {
			tab.Announce(keys[announced])
		}
		pullAndRelease(t, tab, keys[n])
	}
	compare("announced passes", func(st sparsetable.Stats) int64 { return st.Prefetched })
	for from := rows; from < 2*rows; from += 2000 {
		if err := trainSpread(t.Context(), tab, from, 2000); err != nil {
			t.Fatal(err)
		}
	}
	compare("slots that are split", func(st sparsetable.Stats) int64 { return st.Splits })
}
