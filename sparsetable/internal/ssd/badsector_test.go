package ssd_test

import (
	"maps"
	"path/filepath"
	"syscall"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDBadSector checks that a bad sector where no bucket is in use does no harm, whatever reads
// across it: pulls, a scan, compaction, and the opening of the table after another directory was
// lost.
func TestSSDBadSector(t *testing.T) {
	l := newLosing(t, testseed.Rand(t), 0)
	d := newLossyDisks(l, "/a", "/b")
	tab, err := d.open(t, l.opts)
	l.must(err)
	l.train(tab, 0, 6000)
	l.must(tab.(sparsetable.Flusher).Flush(t.Context()))
	ssd.StopBackground(tab)
	l.train(tab, 1000, 500)
	l.must(tab.(sparsetable.Flusher).Flush(t.Context()))
	l.save(tab)
	const bad = 1
	name, from, to := ssd.Hole(tab, bad)
	if to == from {
		t.Fatal("the file has no dead bucket")
	}
	l.must(tab.Close())
	open := func(o sparsetable.Options, spoiled bool) (*lossyDisks, sparsetable.Table) {
		d := d.crashed(1)
		if o.SSD.AllowLost {
			l.must(d.fs.RemoveAll(l.opts.SSD.Dirs[1-bad]))
			d.devices[1-bad] = blocktest.New(blocktest.Options{Dir: l.opts.SSD.Dirs[1-bad]})
		}
		if spoiled {
			d.devices[bad].Inject(func(op blocktest.Op) blocktest.Fault {
				if op.Kind == blocktest.Read && op.Name == name && op.Offset < to && op.Offset+int64(op.Bytes) > from {
					return blocktest.Fault{Err: syscall.EIO}
				}
				return blocktest.Fault{}
			})
		}
		tab, err := d.open(t, o)
		l.must(err)
		return d, tab
	}
	check := func(what string, tab sparsetable.Table, want map[uint64]float32) {
		t.Helper()
		if have := l.content(tab); !maps.Equal(have, want) {
			t.Errorf("%s: %d rows, want %d", what, len(have), len(want))
		}
	}
	_, tab = open(l.opts, true)
	check("a scan", tab, l.rows)
	keys := tabletest.KeysFrom(0, 6000)
	for len(keys) > 0 {
		ws, err := tab.Pull(t.Context(), keys[:300], sparsetable.PullLookup)
		l.must(err)
		for i, key := range keys[:300] {
			if !ws.Found(i) || ws.Row(i)[0] != l.rows[key] {
				t.Fatalf("key %x is wrong", key)
			}
		}
		ws.Release()
		keys = keys[300:]
	}
	p, err := sparsetable.Compact(t.Context(), tab, 0.001, nil)
	l.must(err)
	if p.Files == 0 {
		t.Error("no file was emptied")
	}
	l.must(ssd.CheckIndex(tab))
	check("after compaction", tab, l.rows)
	l.save(tab)
	l.must(tab.Close())

	o := l.opts
	o.SSD.AllowLost = true
	_, tab = open(o, false)
	left := l.content(tab)
	l.must(tab.Close())
	_, tab = open(o, true)
	if lost := tab.(sparsetable.LossHandler).Lost(); len(lost.Dirs) > 0 {
		t.Errorf("the directory with the bad sector is left out: %v", lost.Dirs)
	}
	check("after a loss", tab, left)
	l.must(tab.Close())
}

// TestSSDBadBucketAfterLoss checks that a bucket that cannot be read does not cost the rows of its whole directory when
// the table is opened after the loss of another directory. A directory none of whose buckets can be read is left out.
func TestSSDBadBucketAfterLoss(t *testing.T) {
	l := newLosing(t, testseed.Rand(t), 0)
	d := newLossyDisks(l, "/a", "/b", "/c")
	tab, err := d.open(t, l.opts)
	l.must(err)
	l.train(tab, 0, 6000)
	l.must(tab.(sparsetable.Flusher).Flush(t.Context()))
	ssd.StopBackground(tab)
	l.save(tab)
	const lost, bad = 1, 2
	var name string
	var offset int64
	ssd.Buckets(tab, func(path string, from, _ int64, _ uint32) {
		if filepath.Dir(path) == l.opts.SSD.Dirs[bad] {
			name, offset = filepath.Base(path), from
		}
	})
	l.must(tab.Close())
	l.opts.SSD.AllowLost = true
	// open returns the rows that can be read when the disk works again, and the directories that were left out.
	open := func(fails func(op blocktest.Op) bool) (rows int, counted int64, dirs []sparsetable.LostDir) {
		d := d.crashed(1)
		l.must(d.fs.RemoveAll(l.opts.SSD.Dirs[lost]))
		d.devices[lost] = blocktest.New(blocktest.Options{Dir: l.opts.SSD.Dirs[lost]})
		d.devices[bad].Inject(func(op blocktest.Op) blocktest.Fault {
			if op.Kind == blocktest.Read && fails(op) {
				return blocktest.Fault{Err: syscall.EIO}
			}
			return blocktest.Fault{}
		})
		tab, err := d.open(t, l.opts)
		l.must(err)
		d.devices[bad].Inject(nil)
		l.must(tab.Scan(t.Context(), func(uint64, []float32) error { rows++; return nil }))
		counted, dirs = tab.Stats().Rows, tab.(sparsetable.LossHandler).Lost().Dirs
		l.must(tab.Close())
		return rows, counted, dirs
	}
	want, _, _ := open(func(blocktest.Op) bool { return false })
	rows, counted, dirs := open(func(op blocktest.Op) bool {
		return op.Name == name && op.Offset <= offset && op.Offset+int64(op.Bytes) > offset
	})
	if rows != want || len(dirs) > 0 || counted >= int64(want) || counted < int64(want)-1000 {
		t.Errorf("with a bad bucket %d rows are left, want %d; %d are counted, and %v are left out", rows, want, counted, dirs)
	}
	rows, _, dirs = open(func(op blocktest.Op) bool { return op.Offset > 0 })
	if rows == 0 || rows >= want || len(dirs) != 1 || dirs[0].Dir != l.opts.SSD.Dirs[bad] {
		t.Errorf("with a disk that reads no bucket %d rows are left, and %v are left out", rows, dirs)
	}
}
