package ssd_test

import (
	"slices"
	"sync"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// heldReads is a device that, once it is armed, delays the reads of the first caller until before
// has returned. Other callers can read meanwhile.
type heldReads struct {
	blockio.Device
	mu     sync.Mutex
	before func() // nil: it is not armed
	held   *blockio.Completions
	done   chan struct{}
}

func (d *heldReads) arm(before func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before, d.held, d.done = before, nil, make(chan struct{})
}

func (d *heldReads) Submit(c *blockio.Completions, reads []*blockio.Read) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil && d.held == nil && len(reads) > 0 {
		d.held = c
		go func() {
			d.before()
			close(d.done)
		}()
	}
	if d.held != c {
		d.Device.Submit(c, reads)
		return
	}
	c.Begin(reads)
	all := slices.Clone(reads)
	go func() {
		<-d.done
		for _, r := range all {
			var n int
			n, r.Err = r.File.ReadAt(r.Buf, r.Offset)
			r.SetDone(n)
		}
		blockio.Deliver(all)
	}()
}

// TestSSDNoRowTwice merges slots between two reads of one Pull, which then reads buckets that have
// rows of several of its slots. Together with the first of these rows, the Pull inserts rows that
// announced passes need, which may include rows of its own if the Pull is not one of these passes.
// No row may be in memory twice, since one of the two copies would miss updates.
func TestSSDNoRowTwice(t *testing.T) {
	const batch, passes = 600, 7
	disk := newSSDDisk(1)
	var dev *heldReads
	disk.wrap = func(d blockio.Device) blockio.Device {
		dev = &heldReads{Device: d}
		return dev
	}
	tab := outgrownOn(t, disk, "", 10<<20)
	pass := func(n int) (keys []uint64) {
		for i := range batch {
			keys = append(keys, tabletest.SpreadKey(n*batch+i))
		}
		return keys
	}
	for n := range 3 { // the cache makes room for what it is to know of passes
		tab.Announce(pass(n))
		pullAndRelease(t, tab, pass(n))
	}
	ssd.StopBackground(tab)
	var some []uint64
	for n := range passes {
		tab.Announce(pass(3 + n))
		some = append(some, pass(3 + n)[batch/3:]...)
	}
	before := tab.Stats()
	dev.arm(func() {
		ssd.SetShape(tab, 200, 300, 400, 0)
		if err := ssd.Reshape(t.Context(), tab); err != nil {
			t.Error(err)
		}
	})
	ws, err := tab.Pull(t.Context(), some, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Release()
	st := tab.Stats()
	t.Logf("%d of %d rows came for announced passes, in %d slots instead of %d", st.Prefetched-before.Prefetched, len(some), st.Slots, before.Slots)
	if st.Slots > before.Slots/2 || st.Prefetched-before.Prefetched < 100 {
		t.Error("few rows came for announced passes, or few slots were merged")
	}
	if _, err := ssd.VerifyOpen(t.Context(), tab); err != nil {
		t.Error(err)
	}
	for i := range some {
		const each = batch - batch/3
		if want := float32((3+i/each)*batch + batch/3 + i%each); ws.Row(i)[0] != want {
			t.Fatalf("position %d holds %v, want %v", i, ws.Row(i)[0], want)
		}
	}
}
