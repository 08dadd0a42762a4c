package ssd_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// heldDevice is a device whose writes wait while gate is held.
type heldDevice struct {
	blockio.Device
	gate sync.RWMutex
}

type heldFile struct {
	blockio.File
	gate *sync.RWMutex
}

func (d *heldDevice) Create(name string) (blockio.File, error) {
	f, err := d.Device.Create(name)
	return heldFile{f, &d.gate}, err
}

// Submit passes reads on to the device, with the files of the device instead of its own.
func (d *heldDevice) Submit(c *blockio.Completions, reads []*blockio.Read) {
	for _, r := range reads {
		if f, held := r.File.(heldFile); held {
			r.File = f.File
		}
	}
	d.Device.Submit(c, reads)
}

func (f heldFile) WriteAt(buf []byte, offset int64) (int, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.File.WriteAt(buf, offset)
}

// TestSSDWritesHoldNobodyUp checks that clean rows can leave the cache while a goroutine that
// writes buckets waits for a device that does not complete writes. It waits for a buffer for
// buckets, or for one for the rows that a snapshot has yet to save.
func TestSSDWritesHoldNobodyUp(t *testing.T) {
	l := sparsetable.Layout{ValueDim: 16}
	const rows = 30_000 // fewer than the cache holds, more than all buffers
	for _, c := range []struct {
		name  string
		write func(tab sparsetable.Table, device *heldDevice) error
	}{
		{"buckets", func(tab sparsetable.Table, device *heldDevice) error {
			device.gate.Lock()
			return tab.(sparsetable.Flusher).Flush(t.Context())
		}},
		{"snapshot", func(tab sparsetable.Table, device *heldDevice) error {
			device.gate.Lock()
			pending, err := tab.Snapshot(t.Context(), nil)
			if err != nil {
				return err
			}
			err = ssd.EvictRows(tab, rows)
			_, failed := pending.Wait()
			return errors.Join(err, failed)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			device := &heldDevice{Device: blocktest.New(blocktest.Options{Dir: "/ssd0"})}
			o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: "/ssd0", Layout: l, MemoryBytes: 16 << 20}
			tab, err := openOn(t.Context(), o, []blockio.Device{device}, vfs.NewMem())
			if err != nil {
				t.Fatal(err)
			}
			if err := trainSpread(t.Context(), tab, 0, rows); err != nil {
				t.Fatal(err)
			}
			written := make(chan error, 1)
			go func() { written <- c.write(tab, device) }()
			// Whoever writes buckets holds their lock at every look by now, because it waits.
			for looks, end := 0, time.Now().Add(20*time.Second); looks < 20 && time.Now().Before(end); looks++ {
				if !ssd.WritesBuckets(tab) {
					looks = 0
				}
				time.Sleep(time.Millisecond)
			}
			for end := time.Now().Add(2 * time.Minute); !ssd.MayDropRows(tab); {
				if time.Now().After(end) {
					t.Error("no row can leave the cache while a bucket waits for the device")
					break
				}
				time.Sleep(time.Millisecond)
			}
			device.gate.Unlock()
			if err := <-written; err != nil {
				t.Error(err)
			}
			if err := tab.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// trainSpread pulls n rows, beginning with the given one, and releases them as trained.
func trainSpread(ctx context.Context, tab sparsetable.Table, from, n int) error {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = tabletest.SpreadKey(from + i)
	}
	ws, err := tab.Pull(ctx, keys, sparsetable.PullCreate)
	if err != nil {
		return err
	}
	for i := range keys {
		tab.Layout().SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
	return nil
}
