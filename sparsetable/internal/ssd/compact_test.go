package ssd_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
)

// damagedBuckets is a table whose rows are all in buckets, with dead buckets between them, on a
// disk on which the test can change bytes.
func damagedBuckets(t *testing.T, seed uint64) *faulty {
	t.Helper()
	f := newFaulty(t, faultScript{layout: faultyLayout, keys: 1000, batch: 200, resident: 300}, seed)
	f.opts.SSD.MaxSpaceAmplification = 100 // nothing is compacted that the test does not ask for
	var err error
	if f.table, err = f.open(f.opts); err != nil {
		t.Fatal(err)
	}
	ssd.StopBackground(f.table) // buckets lie where the test has seen them
	for n := range 200 {
		f.train()
		if err := f.table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n < 12 {
			continue
		}
		f.snapshot("all") // and with it everything is on the devices
		if len(f.errs) > 0 {
			t.Fatal(f.errs)
		}
		if _, _, ok := f.besideDead(); ok {
			return f
		}
	}
	t.Fatal("no bucket is dead")
	return nil
}

// flip changes a byte of a bucket file.
func (f *faulty) flip(path string, at int64) {
	f.t.Helper()
	for _, d := range f.disk.devices {
		if data := d.Bytes(filepath.Base(path)); data != nil && d.Dir() == filepath.Dir(path) {
			data[at] ^= 1
			d.SetBytes(filepath.Base(path), data)
			return
		}
	}
	f.t.Fatalf("no file %s", path)
}

// extent is where a bucket lies in a file, in bytes.
type extent struct {
	path     string
	from, to int64
	slot     uint32
}

// besideDead returns a bucket in use and a dead one before it, if there are such buckets. They are
// in a file to which nothing is appended any more and of which at least a quarter is dead, so that
// compaction empties it.
func (f *faulty) besideDead() (live, dead extent, ok bool) {
	used := map[string][]extent{}
	ssd.Buckets(f.table, func(path string, from, to int64, slot uint32) {
		used[path] = append(used[path], extent{path, from, to, slot})
	})
	last := map[string]string{} // by directory
	for path := range used {
		last[filepath.Dir(path)] = max(last[filepath.Dir(path)], path)
	}
	for path, all := range used {
		if path == last[filepath.Dir(path)] {
			continue
		}
		slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
		var live int64
		for _, e := range all {
			live += e.to - e.from
		}
		if 4*live > 3*all[len(all)-1].to {
			continue
		}
		for i := range all[1:] {
			if gap := (extent{path: path, from: all[i].to, to: all[i+1].from}); gap.from < gap.to {
				return all[i+1], gap, true
			}
		}
	}
	return extent{}, extent{}, false
}

// TestSSDCompactDamaged compacts files with a damaged bucket. If the bucket is in use, the error
// must name its slot.
func TestSSDCompactDamaged(t *testing.T) {
	f := damagedBuckets(t, 5)
	_, dead, _ := f.besideDead()
	f.flip(dead.path, dead.from+5)
	if p, err := sparsetable.Compact(t.Context(), f.table, 0.01, nil); err != nil || p.Files == 0 {
		t.Fatalf("damage in a dead bucket: %+v, %v", p, err)
	}
	if err := errors.Join(f.equal(f.table, f.rowStates), f.table.Close()); err != nil {
		t.Fatal(err)
	}

	f = damagedBuckets(t, 5)
	live, _, _ := f.besideDead()
	f.flip(live.path, live.from+45)
	_, err := sparsetable.Compact(t.Context(), f.table, 0.01, nil)
	var bad *sparsetable.CorruptionError
	if !errors.As(err, &bad) || !bad.Bucket || bad.Slot != live.slot || bad.Offset != live.from || bad.File != live.path {
		t.Fatalf("damage in the bucket of slot %d, %s from %d to %d: %v", live.slot, live.path, live.from, live.to, err)
	}
	if err := f.table.Close(); err != nil && !errors.As(err, &bad) {
		t.Fatal(err)
	}
}

// TestSSDCompactAwaitsWrites compacts while buckets are being written to the devices. Their files
// must be compacted, too.
func TestSSDCompactAwaitsWrites(t *testing.T) {
	f := newFaulty(t, faultScript{layout: faultyLayout, keys: 1000, batch: 200, resident: 300}, 5)
	f.opts.SSD.MaxSpaceAmplification = 100
	var err error
	if f.table, err = f.open(f.opts); err != nil {
		t.Fatal(err)
	}
	ssd.StopBackground(f.table)
	for n := range 40 {
		f.train()
		if err := f.table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := sparsetable.Compact(t.Context(), f.table, 0.2, nil); err != nil {
			t.Fatal(err)
		}
		if live, dead, ok := f.besideDead(); ok {
			t.Fatalf("turn %d: Compact left %s with a dead bucket at %d and one in use at %d", n, live.path, dead.from, live.from)
		}
	}
	if err := errors.Join(append(f.errs, f.equal(f.table, f.rowStates), f.table.Close())...); err != nil {
		t.Fatal(err)
	}
}

// TestSSDCancelledBesideCompaction checks that a caller that waits until a file is emptied, which
// takes long for a large file, stops waiting when its context ends.
func TestSSDCancelledBesideCompaction(t *testing.T) {
	f := damagedBuckets(t, 1)
	defer f.table.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := ssd.KeepSpaceBeside(ctx, f.table); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
