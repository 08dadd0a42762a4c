package ssd_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDSmallDeltas changes only a few of many rows that are not in buckets between snapshots. The
// snapshots must write each changed row a few times at most, and not all the other rows again and
// again. Each snapshot must have what the table had, also if rows are written to buckets, and after
// crashes.
func TestSSDSmallDeltas(t *testing.T) {
	const changed = 6
	for _, disturbed := range []bool{false, true} {
		d := newDeltaRun(t, rand.New(rand.NewPCG(testseed.Of(t), 1)))
		d.table = reopened(t, d)
		d.update(d.pull(d.someKeys(1200, 1200), sparsetable.PullCreate))
		last, layers, merged := d.plainSnapshot(), 1, 0
		written, updated := int64(0), int64(0)
		for n := range 300 {
			d.update(d.pull(d.someKeys(changed, 1200), sparsetable.PullCreate))
			updated += changed
			if disturbed && n%8 == 0 {
				if err := ssd.EvictRows(d.table, 1+d.rng.IntN(4)); err != nil {
					t.Fatal(err)
				}
			}
			last = d.plainSnapshot()
			written += ssd.OwnDeltaRows(d.table, last)
			now := ssd.DeltaLayersOf(d.table, last)
			if now > 1 && now < layers {
				merged++
			}
			layers = now
			if now > 64 {
				t.Fatalf("snapshot %d has rows of %d instants", last, now)
			}
			for len(d.saved) > 2 {
				d.drop(slices.Min(slices.Collect(maps.Keys(d.saved))))
			}
			if disturbed && n%97 == 96 {
				d.reopen()
				layers = 1
			}
		}
		t.Logf("disturbed %v: %d rows updated, %d written, %d times files were merged", disturbed, updated, written, merged)
		if merged == 0 || !disturbed && written > 4*updated {
			t.Errorf("%d rows were updated, %d written, %d times files were merged", updated, written, merged)
		}
		d.equal(d.table, d.rows)
		if err := d.table.Close(); err != nil {
			t.Fatal(err)
		}
		d.reads(last)
	}
}

// reopened opens the table of a run with room for all its rows.
func reopened(t *testing.T, d *deltaRun) sparsetable.Table {
	t.Helper()
	if err := d.table.Close(); err != nil {
		t.Fatal(err)
	}
	d.opts.SSD.HotBytes = -1
	d.opts.MemoryBytes = d.budget(3000)
	return d.open(d.opts)
}

// plainSnapshot takes a snapshot while nothing else happens.
func (d *deltaRun) plainSnapshot() uint64 {
	d.t.Helper()
	id := tabletest.Commit(d.t, d.table, nil).ID
	d.saved[id] = maps.Clone(d.rows)
	return id
}
