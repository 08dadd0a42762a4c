package ssd_test

import (
	"math"
	"path/filepath"
	"sync"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
)

// writtenByKind counts what a table writes to its devices, by the suffixes of the files' names.
type writtenByKind struct {
	mu    sync.Mutex
	bytes map[string]int64
}

func (w *writtenByKind) watch(b *bulkTable) {
	w.bytes = map[string]int64{}
	for _, d := range b.disk.devices {
		d.Inject(func(op blocktest.Op) blocktest.Fault {
			w.mu.Lock()
			defer w.mu.Unlock()
			if op.Kind == blocktest.Write {
				w.bytes[filepath.Ext(op.Name)] += int64(op.Bytes)
			}
			return blocktest.Fault{}
		})
	}
}

func (w *writtenByKind) of(kind string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes[kind]
}

// lifetime returns the counters over the life of a closed table.
func (b *bulkTable) lifetime() sparsetable.Stats {
	b.t.Helper()
	b.opts.ReadOnly = true
	b.open()
	b.opts.ReadOnly = false
	d, err := sparsetable.DetailsOf(b.t.Context(), b.tab)
	if err != nil {
		b.t.Fatal(err)
	}
	b.close()
	return d.Lifetime
}

// TestWrittenBytes checks that the statistics count every byte that is written, by purpose, and
// that the counters continue when a table is opened again.
func TestWrittenBytes(t *testing.T) {
	b := newBulkTable(t, 1, 2, 128<<10, 1<<20)
	b.opts.SSD.MaxSpaceAmplification = 1.1
	b.close()
	b.open()
	updated := int64(0)
	round := func() {
		before := b.tab.Stats()
		src := b.source(20000, 9000)
		b.importRows(src)
		for range 30 {
			b.train(800, 9000)
		}
		if _, err := sparsetable.Compact(t.Context(), b.tab, 0.01, nil); err != nil {
			t.Fatal(err)
		}
		b.snapshot()
		infos, err := b.tab.Snapshots()
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos[:len(infos)-1] { // it holds files
			if err := b.tab.DropSnapshot(info.ID); err != nil {
				t.Fatal(err)
			}
		}
		updated += src.count + 30*800
		if st := b.tab.Stats(); st.SnapshotBytes == before.SnapshotBytes || st.CatalogWrittenBytes == before.CatalogWrittenBytes {
			t.Errorf("a snapshot wrote nothing: %+v", st)
		}
	}
	var w writtenByKind
	w.watch(b)
	for n := 0; n < 20 && b.tab.Stats().CompactedBytes == 0; n++ {
		round()
	}
	ssd.StopBackground(b.tab) // which may be compacting: what is read below is of one instant
	if err := b.tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.snapshot()
	st := b.tab.Stats()
	if have, want := st.FlushedBytes+st.CompactedBytes+st.ImportedBytes, w.of(".bucket")+w.of(".spool"); have != want {
		t.Errorf("buckets and spools: %d bytes written, the devices saw %d: %+v", have, want, st)
	}
	if want := w.of(".delta"); st.SnapshotBytes != want {
		t.Errorf("snapshots: %d bytes written, the devices saw %d", st.SnapshotBytes, want)
	}
	if st.FlushedBytes == 0 || st.CompactedBytes == 0 || st.ImportedBytes <= w.of(".spool") || w.of(".spool") == 0 || st.SnapshotBytes == 0 {
		t.Errorf("this tests nothing: %v, %+v", w.bytes, st)
	}
	if sum := st.FlushedBytes + st.CompactedBytes + st.ImportedBytes + st.SnapshotBytes + st.CatalogWrittenBytes; st.WrittenBytes != sum {
		t.Errorf("%d bytes written, by purpose %d", st.WrittenBytes, sum)
	}
	if st.UpdatedRows != updated {
		t.Errorf("%d rows updated, want %d", st.UpdatedRows, updated)
	}
	if want := float64(st.WrittenBytes) / float64(updated*int64(8+stressLayout.Bytes())); math.Abs(st.WriteAmplification-want) > 1e-9 {
		t.Errorf("write amplification %g, want %g", st.WriteAmplification, want)
	}

	b.close()

	// A snapshot has all but the end of its own record. Opened again, the table
	// goes on from there.
	was := b.lifetime()
	if was.UpdatedRows != updated || was.FlushedBytes != st.FlushedBytes || was.CompactedBytes != st.CompactedBytes || was.ImportedBytes != st.ImportedBytes ||
		was.SnapshotBytes != st.SnapshotBytes || was.CatalogWrittenBytes == 0 || was.CatalogWrittenBytes > st.CatalogWrittenBytes {
		t.Errorf("the table's life is %+v, was %+v", was, st)
	}
	b.open()
	round()
	st = b.tab.Stats()
	b.close()
	life := b.lifetime()
	if life.UpdatedRows != updated || life.ImportedBytes != was.ImportedBytes+st.ImportedBytes || life.SnapshotBytes != was.SnapshotBytes+st.SnapshotBytes ||
		life.FlushedBytes <= was.FlushedBytes || life.CatalogWrittenBytes <= was.CatalogWrittenBytes || life.WriteAmplification < 1 {
		t.Errorf("the table's life is %+v, was %+v, and %+v since", life, was, st)
	}
}
