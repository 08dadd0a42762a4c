package sparsetable_test

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

// TestSSDStatsRows: no row is counted twice, neither while the rows used most come back
// into memory nor while rows are read from their buckets.
func TestSSDStatsRows(t *testing.T) {
	const rows = 60_000
	devices := []blockio.Device{blocktest.New(blocktest.Options{Dir: "/ssd0"})}
	fs := vfs.NewMem()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: "/ssd0", Layout: sparsetable.Layout{ValueDim: 16}, MemoryBytes: 14 << 20}
	o.SSD.HotBytes = 2 << 20
	tab, err := sparsetable.OpenSSDOn(t.Context(), o, devices, fs)
	if err != nil {
		t.Fatal(err)
	}
	if err := trainSpread(t.Context(), tab, 0, rows); err != nil {
		t.Fatal(err)
	}
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	snapshotOf(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}

	if tab, err = sparsetable.OpenSSDOn(t.Context(), o, devices, fs); err != nil {
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
	sparsetable.WaitRestored(tab)
	for from := 0; from < rows; from += 2000 {
		keys := make([]uint64, 2000)
		for i := range keys {
			keys[i] = spreadKey(from + i)
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
