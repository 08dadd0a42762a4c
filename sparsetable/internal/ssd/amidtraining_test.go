package ssd_test

import (
	"testing"

	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDSnapshotEvictsNothing checks that a snapshot that is taken during training takes no memory
// from a full cache. Otherwise rows would first have to be written to their buckets, and training
// would wait for that.
func TestSSDSnapshotEvictsNothing(t *testing.T) {
	const resident = 60_000
	r := newRestarted(t, 1, resident)
	r.open()
	defer r.close()
	ssd.StopBackground(r.table) // it would have rows leave, too
	for from := 0; from < resident; from += 2000 {
		r.train(tabletest.KeysFrom(from, 2000))
	}
	some := tabletest.KeysFrom(resident/2, 12_000)
	ws := r.pull(some)
	r.update(ws, some)
	before := r.table.Stats()
	if before.Evictions == 0 || before.DirtyRows < before.CacheRows/2 {
		t.Fatalf("the cache is not full of dirty rows: %+v", before)
	}
	p, err := r.table.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.wait(p)
	if after := r.table.Stats(); after.FlushedRows != before.FlushedRows || after.Evictions != before.Evictions {
		t.Errorf("%d rows were written to buckets and %d left the cache for a snapshot", after.FlushedRows-before.FlushedRows, after.Evictions-before.Evictions)
	}
	ws.Release()
	r.check(r.values)
}

// TestSSDSnapshotAmidTraining checks that a snapshot that is taken during training has no clean
// rows, and that other snapshots have some.
func TestSSDSnapshotAmidTraining(t *testing.T) {
	r := newRestarted(t, 1, 60_000)
	r.opts.SSD.CachePolicy = "lookahead" // the others take no note of announced passes
	r.open()
	defer r.close()
	r.train(tabletest.KeysFrom(0, 2000))
	keys := tabletest.KeysFrom(0, 10)
	for _, c := range []struct {
		what     string
		training func() (end func())
		clean    bool
	}{
		{"at rest", func() func() { return func() {} }, true},
		{"with pinned rows", func() func() { return r.pull(keys).Release }, false},
		{"with an announced pass", func() func() { r.table.Announce(keys); return r.table.ForgetAnnounced }, false},
		{"at rest again", func() func() { return func() {} }, true},
	} {
		r.flush()
		end := c.training()
		id := tabletest.Commit(t, r.table, nil).ID
		end()
		if rows := ssd.CleanRowsOf(r.table, id); (rows > 1000) != c.clean || (rows < 100) == c.clean {
			t.Errorf("%s, a snapshot has %d clean rows, want most: %v", c.what, rows, c.clean)
		}
	}
	r.check(r.values)
}
