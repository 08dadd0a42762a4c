package checkpoint_test

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"

	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/catalog"
)

// TestKeep checks that the files of a snapshot stay while the snapshot is kept, however often,
// although it was dropped and the next snapshot does not refer to them. After the last release, the
// files that nothing else needs are deleted.
func TestKeep(t *testing.T) {
	r := mustOpen(t, newDisk(t, 1))
	defer r.close()
	r.must(r.train(1, keysFrom(0, 40)...))
	r.must(r.write(3, true))
	first := r.mustSnapshot("first")
	a, err := r.store.Keep(0) // the newest
	r.must(err)
	b, err := r.store.Keep(first.ID)
	r.must(err)
	r.must(r.train(2, keysFrom(0, 40)...))
	r.must(r.write(3, true))
	second := r.mustSnapshot("second")
	r.must(r.store.Drop(first.ID))
	has := func(when string, want bool) {
		t.Helper()
		r.files.AwaitDeletions()
		names := append(r.disk.names(t, ".delta"), r.disk.names(t, ".bucket")...)
		for _, name := range append(namesOf(first.Deltas), bucketName(first.Files[0])) {
			stays := slices.Contains(namesOf(second.Deltas), name) || slices.ContainsFunc(second.Files, func(f catalog.File) bool { return bucketName(f) == name })
			if slices.Contains(names, name) != (want || stays) {
				t.Errorf("%s, %s exists: %v", when, name, !want)
			}
		}
	}
	if slices.Contains(namesOf(second.Deltas), first.Deltas[0].Name) {
		t.Fatal("the second snapshot refers to the first one's file: the test shows nothing")
	}
	has("when it was dropped", true)
	r.must(a.Release())
	r.must(a.Release()) // counts once
	has("when one of two was released", true)
	r.must(b.Release())
	has("in the end", false)
	if _, err := r.store.Keep(first.ID); !errors.Is(err, catalog.ErrNoSnapshot) {
		t.Errorf("a snapshot that was dropped is kept: %v", err)
	}
	if _, err := r.store.Keep(second.ID + 7); !errors.Is(err, catalog.ErrNoSnapshot) {
		t.Errorf("a snapshot that never was is kept: %v", err)
	}
}

// TestReleaseAfterClose checks that releasing a snapshot after the table was closed deletes no
// file: the files may belong to a table that was restored meanwhile.
func TestReleaseAfterClose(t *testing.T) {
	r := mustOpen(t, newDisk(t, 1))
	r.must(r.train(1, keysFrom(0, 40)...))
	s := r.mustSnapshot("first")
	k, err := r.store.Keep(s.ID)
	r.must(err)
	r.must(r.train(2, keysFrom(0, 40)...))
	r.mustSnapshot("second")
	r.must(r.store.Drop(s.ID))
	r.close()
	before := r.disk.names(t, ".delta")
	r.must(k.Release())
	if after := r.disk.names(t, ".delta"); !slices.Equal(after, before) || !slices.Contains(before, s.Deltas[0].Name) {
		t.Errorf("%v, before Release %v", after, before)
	}
}

// TestKeptSnapshot checks that a kept snapshot can be copied without the clean rows in its delta
// files, and with the index as it was at that instant.
func TestKeptSnapshot(t *testing.T) {
	r := mustOpenWith(t, newDisk(t, 1), roomOptions{hotBytes: 1 << 20})
	defer r.close()
	r.must(r.train(1, keysFrom(0, 60)...))
	for slot := range uint32(8) {
		r.must(r.write(slot, false)) // they stay in the cache, clean
	}
	s := r.mustSnapshot("first")
	d := s.Deltas[0]
	if d.Rows == d.DirtyRows {
		t.Fatal("no clean rows were saved: the test shows nothing")
	}
	k, err := r.store.Keep(s.ID)
	r.must(err)
	defer func() { r.must(k.Release()) }()
	var then bytes.Buffer
	r.must(k.WriteIndex(&then, 0))
	r.must(r.train(2, keysFrom(0, 60)...))
	for slot := range uint32(tableSlot) {
		r.must(r.write(slot, false))
	}
	r.mustSnapshot("second")
	r.must(r.store.Drop(s.ID))
	have := k.Snapshot()
	if got := have.Deltas[0]; got.Rows != d.DirtyRows || got.Bytes != d.DirtyBytes || got.Name != d.Name {
		t.Errorf("%+v, want the dirty rows of %+v", got, d)
	}
	var now bytes.Buffer
	r.must(k.WriteIndex(&now, 0))
	if !bytes.Equal(then.Bytes(), now.Bytes()) {
		t.Error("the index of a snapshot that is kept has changed")
	}
}

// TestDropFails checks that a snapshot whose files cannot be deleted is dropped nevertheless. The
// files count as used space until the table is opened again, which deletes them.
func TestDropFails(t *testing.T) {
	d := newDisk(t, 1)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 40)...))
	first := r.mustSnapshot("first")
	r.must(r.train(1, keysFrom(0, 40)...))
	r.mustSnapshot("second")
	d.devices[0].Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Remove {
			return blocktest.Fault{Err: syscall.EROFS}
		}
		return blocktest.Fault{}
	})
	if err := r.store.Drop(first.ID); !errors.Is(err, syscall.EROFS) {
		t.Errorf("the file could not be deleted: %v", err)
	}
	if n := len(r.catalog.Snapshots()); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	if files, _ := r.store.Kept(); files[0] != 2 {
		t.Errorf("%d files count, want 2", files[0])
	}
	d.watch()
	r.close()
	r = mustOpen(t, d)
	if files, _ := r.store.Kept(); files[0] != 1 || len(d.names(t, ".delta")) != 1 {
		t.Errorf("%d files count, on disk are %v", files[0], d.names(t, ".delta"))
	}
	r.close()
}

// TestOthersFiles checks that files of other tables in the same directories, and files that belong
// to no table, are not touched.
func TestOthersFiles(t *testing.T) {
	d := newDisk(t, 2)
	others := []string{"fedcba9876543210-0000000000000001.delta", "0123456789abcdef-notes.txt", "x.delta", "0123456789abcdef.delta"}
	for _, name := range others {
		d.devices[1].SetBytes(name, []byte("x"))
	}
	d.devices[1].SetBytes("0123456789abcdef-0000000000000001-1.delta", []byte("x")) // of a snapshot that was never committed
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 40)...))
	s := r.mustSnapshot("first")
	r.must(r.store.Drop(s.ID))
	r.store.Restart()
	r.close()
	slices.Sort(others)
	if have := namesOn(t, d.devices[1], ""); !slices.Equal(have, others) {
		t.Errorf("left are %v, want %v", have, others)
	}
}
