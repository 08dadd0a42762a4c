package ssd_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// deltaRun is a table whose snapshots share delta files, together with the rows that each snapshot
// must have.
type deltaRun struct {
	t     *testing.T
	rng   *rand.Rand
	disk  *ssdDisk
	opts  sparsetable.Options
	table sparsetable.Table
	rows  map[uint64]float32
	saved map[uint64]map[uint64]float32 // by snapshot
	held  *pulled                       // for reading

	// left is how many operations on delta files, but deletions, succeed before the others
	// fail; while it is negative, none fails.
	left                          atomic.Int64
	shared, folded, failed, tight int
}

func newDeltaRun(t *testing.T, rng *rand.Rand) *deltaRun {
	d := &deltaRun{t: t, rng: rng, disk: newSSDDisk(2), rows: map[uint64]float32{}, saved: map[uint64]map[uint64]float32{}}
	d.left.Store(-1)
	d.opts = sparsetable.Options{Layout: stressLayout, SSD: sparsetable.SSDOptions{
		Dirs: []string{"/ssd0", "/ssd1"}, CachePolicy: sparsetable.CachePolicies()[rng.IntN(3)], MaxSpaceAmplification: 1.3,
	}}
	d.opts.SSD.HotBytes = []int64{-1, 20 << 10}[rng.IntN(2)]
	d.opts.MemoryBytes = d.budget(1500)
	d.table = d.open(d.opts)
	if rng.IntN(2) == 0 { // so that soon the numbers of bucket files begin anew
		tabletest.Commit(t, d.table, nil)
		if err := d.table.Close(); err != nil {
			t.Fatal(err)
		}
		if err := ssd.SetNextFile(d.opts.SSD.Dirs[0], d.disk.fs, 1<<24-6); err != nil {
			t.Fatal(err)
		}
		d.table = d.open(d.opts)
	}
	return d
}

func (d *deltaRun) budget(resident int64) int64 {
	return smallest(stressLayout, d.opts.SSD, resident) + 64<<10
}

func (d *deltaRun) open(o sparsetable.Options) sparsetable.Table {
	d.t.Helper()
	var devices []blockio.Device
	for _, dev := range d.disk.devices {
		dev.Inject(func(op blocktest.Op) blocktest.Fault {
			if o.ReadOnly || !strings.HasSuffix(op.Name, ".delta") || op.Kind == blocktest.Remove || d.left.Load() < 0 {
				return blocktest.Fault{}
			}
			if d.left.Load() > 0 {
				d.left.Add(-1)
				return blocktest.Fault{}
			}
			return blocktest.Fault{Err: errors.New("injected")}
		})
		devices = append(devices, dev)
	}
	tab, err := openOn(d.t.Context(), o, devices, d.disk.fs)
	if err != nil {
		d.t.Fatal(err)
	}
	return tab
}

func (d *deltaRun) someKeys(n, of int) []uint64 {
	keys := make([]uint64, 0, n)
	for _, i := range d.rng.Perm(of)[:n] {
		keys = append(keys, tabletest.SpreadKey(i+1))
	}
	return keys
}

func (d *deltaRun) pull(keys []uint64, mode sparsetable.PullMode) *pulled {
	d.t.Helper()
	ws, err := d.table.Pull(d.t.Context(), keys, mode)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, k := range keys {
		if have := ws.Row(i)[0]; have != d.rows[k] {
			d.t.Fatalf("key %x is pulled with %v, want %v", k, have, d.rows[k])
		}
	}
	return &pulled{ws, keys}
}

// update trains most rows of a set, and releases it.
func (d *deltaRun) update(p *pulled) {
	for i, k := range p.keys {
		row := p.Row(i)
		if d.rng.IntN(8) == 0 {
			continue // pulled, not trained
		}
		row[0] = float32(1 + d.rng.IntN(1<<20))
		st := stressLayout.Stats(row)
		st.Count++
		st.LastSeen = uint32(d.rng.IntN(10))
		stressLayout.SetStats(row, st)
		d.rows[k] = row[0]
	}
	p.Release()
}

func (d *deltaRun) train() {
	of := []int{200, 1000, 5000}[d.rng.IntN(3)]
	d.update(d.pull(d.someKeys(1+d.rng.IntN(150), of), sparsetable.PullCreate))
}

// snapshot takes a snapshot while a set that was partly updated before is pinned, and another set
// that is only read.
func (d *deltaRun) snapshot() {
	d.t.Helper()
	pinned := d.pull(d.someKeys(50, 300), sparsetable.PullCreate)
	for i, k := range pinned.keys[:25] {
		row := pinned.Row(i)
		row[0]++
		st := stressLayout.Stats(row)
		st.Count++
		stressLayout.SetStats(row, st)
		d.rows[k] = row[0]
	}
	want := maps.Clone(d.rows)
	fails := d.rng.IntN(6) == 0
	if fails {
		d.left.Store(int64(d.rng.IntN(4)))
	}
	p, err := d.table.Snapshot(d.t.Context(), nil)
	d.update(pinned)
	var info sparsetable.SnapshotInfo
	if err == nil {
		d.train() // meanwhile
		info, err = p.Wait()
	}
	d.left.Store(-1)
	if err != nil {
		if !fails {
			d.t.Fatal(err)
		}
		d.failed++
		return
	}
	if info.Rows != int64(len(want)) {
		d.t.Fatalf("snapshot %d of %d rows, want %d", info.ID, info.Rows, len(want))
	}
	d.saved[info.ID] = want
	if ssd.DeltaLayersOf(d.table, info.ID) > 1 {
		d.shared++
	} else {
		d.folded++
	}
	for len(d.saved) > 4 {
		d.drop(slices.Min(slices.Collect(maps.Keys(d.saved))))
	}
}

// idleSnapshot takes a snapshot of a table some of whose rows were written to their buckets since
// the last snapshot, but not changed.
func (d *deltaRun) idleSnapshot() {
	d.t.Helper()
	d.saved[tabletest.Commit(d.t, d.table, nil).ID] = maps.Clone(d.rows)
	d.update(d.pull(d.someKeys(60, 300), sparsetable.PullCreate))
	if err := ssd.EvictRows(d.table, 150); err != nil {
		d.t.Fatal(err)
	}
	if n := d.table.Stats().DirtyRows; n == 0 {
		return
	}
	d.saved[tabletest.Commit(d.t, d.table, nil).ID] = maps.Clone(d.rows)
	if err := ssd.EvictRows(d.table, 50); err != nil {
		d.t.Fatal(err)
	}
	d.saved[tabletest.Commit(d.t, d.table, nil).ID] = maps.Clone(d.rows)
	d.reopen()
}

func (d *deltaRun) drop(id uint64) {
	d.t.Helper()
	if err := d.table.DropSnapshot(id); err != nil {
		d.t.Fatal(err)
	}
	delete(d.saved, id)
}

// step does one random operation.
func (d *deltaRun) step() {
	d.t.Helper()
	var err error
	switch n := d.rng.IntN(40); {
	case n < 14:
		d.train()
	case n < 20:
		err = ssd.EvictRows(d.table, 1+d.rng.IntN(300))
	case n < 23:
		rows := []int{2, 5, 30}[d.rng.IntN(3)]
		ssd.SetShape(d.table, rows, 2*rows, 8*rows, 0)
		err = ssd.Reshape(d.t.Context(), d.table)
	case n < 25:
		_, err = ssd.EmptyAFile(d.t.Context(), d.table, d.rng)
	case n < 26: // rows that stay pinned for reading, while their slots are written
		d.release()
		var keys []uint64
		for _, k := range d.someKeys(80, 300) {
			if d.rows[k] != 0 {
				keys = append(keys, k)
			}
		}
		d.held = d.pull(keys, sparsetable.PullLookup)
	case n < 34:
		d.snapshot()
	case n < 35:
		if ids := slices.Sorted(maps.Keys(d.saved)); len(ids) > 1 {
			d.drop(ids[len(ids)-1]) // the next one may refer to the same files
			if d.rng.IntN(2) == 0 {
				d.train()
				d.snapshot()
			}
		}
	case n < 36:
		d.release()
		today := uint32(d.rng.IntN(3) * 4)
		if _, err = d.table.Expire(d.t.Context(), sparsetable.ExpiryRule{Today: 12, UnseenDays: 12 - today}); err == nil {
			d.adopt()
			d.snapshot()
		}
	case n < 37:
		d.release()
		err = d.table.(sparsetable.Flusher).Flush(d.t.Context())
	case n < 39:
		if d.held == nil {
			d.idleSnapshot()
		}
	default:
		d.reopen()
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// adopt removes the keys that the table no longer has, because Expire has dropped them, from the
// expected rows.
func (d *deltaRun) adopt() {
	d.t.Helper()
	have := map[uint64]float32{}
	if err := d.table.Scan(d.t.Context(), func(key uint64, row []float32) error { have[key] = row[0]; return nil }); err != nil {
		d.t.Fatal(err)
	}
	for k, v := range have {
		if d.rows[k] != v {
			d.t.Fatalf("key %x holds %v, want %v", k, v, d.rows[k])
		}
	}
	d.rows = have
}

// TestSSDDeltas takes and drops snapshots in random sequences. In between, rows change, leave the
// cache, come back, stay pinned and expire, slots are split and merged, snapshots fail, the machine
// crashes, and the budget changes. Each snapshot must have what the table had, and no delta file
// may be left to which no snapshot refers.
func TestSSDDeltas(t *testing.T) {
	runs, steps := 6, 150
	if testing.Short() {
		runs = 2
	}
	shared, folded, failed, tight := 0, 0, 0, 0
	for run := range runs {
		d := newDeltaRun(t, rand.New(rand.NewPCG(testseed.Of(t), uint64(run))))
		for range steps {
			d.step()
		}
		d.release()
		d.equal(d.table, d.rows)
		if err := d.table.Close(); err != nil {
			t.Fatal(err)
		}
		d.table = d.open(d.opts)
		wanted := map[string]bool{}
		for id := range d.saved {
			for _, name := range ssd.DeltasOf(d.table, id) {
				wanted[name] = true
			}
		}
		for _, name := range d.disk.Files() {
			base := path.Base(name)
			if isDelta(name) && !wanted[base] {
				t.Errorf("no snapshot refers to %s", name)
			}
			delete(wanted, base)
		}
		if len(wanted) > 0 {
			t.Errorf("%d delta files are missing", len(wanted))
		}
		if err := d.table.Close(); err != nil {
			t.Fatal(err)
		}
		shared, folded, failed, tight = shared+d.shared, folded+d.folded, failed+d.failed, tight+d.tight
	}
	t.Logf("%d snapshots with several files, %d with one, %d failed, %d times a smaller budget", shared, folded, failed, tight)
	if shared == 0 || folded == 0 || !testing.Short() && (failed == 0 || tight == 0) {
		t.Error("too few of some kind to test anything")
	}
}
