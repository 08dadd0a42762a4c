package ssd_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/tabletest"
)

// coldTable makes a table whose rows are all in buckets, and returns a function that opens it with
// no rows in memory.
func coldTable(t *testing.T, o sparsetable.Options, rows int, open func(sparsetable.Options) (sparsetable.Table, error)) {
	t.Helper()
	tab, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < rows; from += 1000 {
		fillRows(t, tab, from, 1000)
	}
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestQueueDepth checks that a device is given at most as many reads at a time as the option says,
// and that a larger value has the effect that it is given more.
func TestQueueDepth(t *testing.T) {
	const rows, every = 100_000, 50 // few of the buckets are neighbours
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: stressLayout, MemoryBytes: 32 << 20}
	o.SSD.HotBytes = -1
	open := func(o sparsetable.Options) (sparsetable.Table, error) { return sparsetable.Open(t.Context(), o) }
	coldTable(t, o, rows, open)
	preads := false
	most := func(depth int) int64 {
		t.Helper()
		o.SSD.QueueDepth = depth
		tab, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		keys := make([]uint64, rows/every)
		for i := range keys {
			keys[i] = tabletest.SpreadKey(every * i)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
		d, err := sparsetable.DetailsOf(t.Context(), tab)
		if err != nil {
			t.Fatal(err)
		}
		if d.Stats.DeviceReads < 100 || depth > 0 && d.Directories[0].QueueDepth != depth {
			t.Fatalf("%d reads, %+v", d.Stats.DeviceReads, d.Directories[0])
		}
		preads = d.Directories[0].Engine != "io_uring"
		return d.Directories[0].MaxInFlight
	}
	for _, depth := range []int{1, 5} {
		if n := most(depth); n < 1 || n > int64(depth) {
			t.Errorf("%d reads at once, the option allows %d", n, depth)
		}
	}
	// A pool of threads has no more in flight than reads that wait for a device.
	if n := most(0); n <= 5 && !preads {
		t.Errorf("%d reads at once where the table chooses", n)
	}
}

// TestLookaheadPasses checks that the window holds as many announced passes beyond the next one as
// the option says, and that no more rows are read ahead.
func TestLookaheadPasses(t *testing.T) {
	const rows, perPass, passes = 20_000, 600, 12
	dev, fs := blocktest.New(blocktest.Options{Dir: "/ssd"}), vfs.NewMem()
	o := sparsetable.Options{Layout: stressLayout, MemoryBytes: 64 << 20, SSD: sparsetable.SSDOptions{Dirs: []string{"/ssd"}, HotBytes: -1, CachePolicy: "lookahead"}}
	open := func(o sparsetable.Options) (sparsetable.Table, error) {
		return openOn(t.Context(), o, []blockio.Device{dev}, fs)
	}
	coldTable(t, o, rows, open)
	keys := make([][]uint64, passes)
	for p := range keys {
		for i := range perPass {
			keys[p] = append(keys[p], tabletest.SpreadKey(p*perPass+i))
		}
	}
	for _, look := range []int{1, 4} {
		o.SSD.LookaheadPasses = look
		tab, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		for p := range passes {
			for ahead := p; ahead < passes; ahead++ { // again and again, as far as there is
				if p == 0 || ahead == p+look {
					tab.Announce(keys[ahead])
				}
			}
			// The pass to be pulled, and those beyond.
			if have, want := tab.Stats().AnnouncedPasses, int64(min(look+1, passes-p)); have != want {
				t.Fatalf("before pass %d the window has %d passes, want %d", p, have, want)
			}
			want := int64(perPass * min(p+look+1, passes))
			for deadline := time.Now().Add(2 * time.Minute); tab.Stats().Prefetched < want && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			ws, err := tab.Pull(t.Context(), keys[p], sparsetable.PullCreate)
			if err != nil {
				t.Fatal(err)
			}
			ws.Release()
			if n := tab.Stats().Prefetched; n != want {
				t.Fatalf("%d rows read ahead before pass %d, want %d", n, p, want)
			}
		}
		if st := tab.Stats(); st.Hits != perPass*passes {
			t.Errorf("%d of %d keys were in memory", st.Hits, perPass*passes)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
