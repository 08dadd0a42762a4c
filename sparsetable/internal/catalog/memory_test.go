package catalog

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"aibox/sparsetable/internal/invariants"
)

// mostHeap runs f and returns by how much the live heap grew at most in the meantime, as measured
// by the garbage collector, which runs all the time. Memory of Pebble outside of the heap (with
// cgo, its cache and its memtable) is limited by its options.
func mostHeap(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	heap := func() int64 {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		return int64(live[0].Value.Uint64())
	}
	runtime.GC()
	runtime.GC() // what the first one finalized
	before, most := heap(), int64(0)
	stop := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				most = max(most, heap()-before)
			}
		}
	})
	f()
	close(stop)
	sampler.Wait()
	return most
}

// aloneVariable is set in the process that TestMemory starts.
const aloneVariable = "AIBOX_TEST_CATALOG_MEMORY"

// The heap of a catalog that is opened, committed to, compacted and read stays within what
// MemoryBytes says. The test runs in a process of its own, because the garbage of other tests would
// be counted otherwise.
func TestMemory(t *testing.T) {
	if raceEnabled || invariants.Enabled {
		t.Skip("memory that only tests take would be counted: the race detector's, or that of Pebble's own invariants")
	}
	if os.Getenv(aloneVariable) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run", "^TestMemory$", "-test.v")
		cmd.Env = append(os.Environ(), aloneVariable+"=1")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	const pages = 4000
	dir, lists := t.TempDir(), int64(0)
	most := mostHeap(func() {
		c, err := Open(Options{Dir: dir, Format: testFormat})
		if err != nil {
			t.Fatal(err)
		}
		page := make([]byte, 3<<10)
		for range 12 { // the last of which compacts
			w, err := c.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for p := range uint32(pages) {
				if err := w.PutPage(p, page); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Commit(Snapshot{Slots: pages * uint32(testFormat.PageSlots)}); err != nil {
				t.Fatal(err)
			}
			if all := c.Snapshots(); len(all) > 2 {
				if err := c.Drop(all[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			lists = max(lists, c.MemoryBytes()-FixedBytes)
		}
		if n := compactions(c.mu.db); n == 0 {
			t.Error("nothing was compacted")
		}
		shut(t, c)
		if c, err = Open(Options{Dir: dir, Format: testFormat}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(0, func(uint32, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		shut(t, c)
	})
	most += cacheBytes + 2*memTableBytes // which may lie past the heap
	t.Logf("Pebble takes %d KiB, %d KiB are counted; %d KiB of lists", (most-lists)>>10, FixedBytes>>10, lists>>10)
	// 870 to 1,040 KiB were seen.
	if most-lists > FixedBytes {
		t.Errorf("Pebble takes %d bytes, %d are counted", most-lists, FixedBytes)
	}
}

func compactions(db *pebble.DB) int64 {
	m := db.Metrics()
	return m.Compact.Count
}
