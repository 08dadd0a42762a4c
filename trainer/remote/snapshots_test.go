package remote

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// snapshot returns the n-th snapshot of a run: bucket files that were written between two
// snapshots, one that grows all the time, and files whose contents change.
func snapshot(run string, n int) (contents, Publication) {
	c := contents{"dense": lines(fmt.Sprint(run, " dense ", n), 5), "table/" + run + "-growing.bucket": lines(run+" growing", 20*n)}
	for i := max(1, n-2); i <= n; i++ {
		c[fmt.Sprintf("table/%s-%d.bucket", run, i)] = lines(fmt.Sprint(run, " rows ", i), 10)
	}
	p := c.publication("job", 0)
	p.Owner, p.Identity, p.ParentIdentity, p.Kind, p.Run, p.Step = "host:"+run, fmt.Sprint(run, n), "", Snapshot, run, int64(n)
	return c, p
}

// ofOwner selects what an owner has published.
func ofOwner(owner string) func(*Manifest) bool {
	return func(m *Manifest) bool { return m.Owner == owner }
}

// wantSnapshots fails the test unless the directory has complete snapshots with exactly these
// numbers, and the newest is what was uploaded.
func wantSnapshots(t *testing.T, d *Directory, newest contents, numbers ...int) {
	t.Helper()
	all, faults, err := d.Snapshots(t.Context())
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	got := wholeNumbers(t, d, all)
	if !slices.Equal(got, numbers) {
		t.Fatalf("snapshots %v, want %v", got, numbers)
	}
	dir := t.TempDir()
	if _, err := fetch(t, d, all[0], dir); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, newest)
}

// TestSnapshots checks that only what is new is uploaded of each snapshot, and only the added bytes
// of a file that has grown. Two snapshots of a run are kept. Generations and other runs are not
// affected, and share files with the snapshots. In the end nothing may be left.
func TestSnapshots(t *testing.T) {
	store := newMemStore()
	d := Open("mem://", store, Options{partBytes: 256})
	_, other := snapshot("other", 1)
	if _, err := d.Publish(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	var last contents
	for n := 1; n <= 12; n++ {
		c, p := snapshot("run", n)
		out, err := d.Publish(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		changed := c.bytes("dense") + c.bytes(fmt.Sprintf("table/run-%d.", n)) + c.bytes("table/run-growing") - last.bytes("table/run-growing")
		if out.UploadedBytes > changed {
			t.Errorf("snapshot %d: %d bytes were uploaded, %d have changed", n, out.UploadedBytes, changed)
		}
		last = c
	}
	wantSnapshots(t, d, last, 13, 12, 1)
	if all, _, err := d.Generations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d generations, %v", len(all), err)
	}
	model := contents{}
	for name, text := range last {
		if strings.HasPrefix(name, "table/") {
			model[name] = text
		}
	}
	if out, err := d.Publish(t.Context(), model.publication("job", 1)); err != nil || out.UploadedBytes != 0 {
		t.Errorf("the model: %+v, %v", out, err)
	}
	if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:run")); err != nil {
		t.Fatal(err)
	}
	all := wantGenerations(t, d, 1)
	dir := t.TempDir()
	if _, err := fetch(t, d, all[0], dir); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, model)
	if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:other")); err != nil {
		t.Fatal(err)
	}
	store.clean(t)
	if left := store.names(snapshotsDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRemoveSnapshotsFaults ends the removal of a run's snapshots and priority saves at each of its
// operations in turn. The next removal must delete what was left, including files to which no
// manifest refers any more.
func TestRemoveSnapshotsFaults(t *testing.T) {
	for at := 0; ; at++ {
		works := func(int) (bool, bool) { return false, false }
		store := &faultyStore{memStore: newMemStore(), fail: works}
		d := Open("mem://", store, Options{partBytes: 256})
		_, first := snapshot("run", 1)
		_, save := prioritySave("run", 2)
		for _, p := range []Publication{first, save} {
			if _, err := d.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		store.ops = 0
		store.fail = func(op int) (bool, bool) { return op >= at, false }
		_, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:run"))
		store.fail = works
		if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:run")); err != nil {
			t.Fatal(err)
		}
		if len(store.files) > 0 {
			t.Fatalf("operation %d: %v; left: %v", at, err, slices.Concat(store.names(pendingDir), store.names(objectsDir)))
		}
		if err == nil {
			break
		}
	}
}

// TestSnapshotFaults makes every operation of uploads fail in turn, before or after it was done,
// once or permanently. The earlier snapshot must stay complete. Once the directory works again, the
// next snapshot must be uploaded, and nothing may be left over.
func TestSnapshotFaults(t *testing.T) {
	before, p1 := snapshot("run", 1)
	for _, forGood := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for at := 0; ; at++ {
				store := &faultyStore{memStore: newMemStore(), fail: func(int) (bool, bool) { return false, false }}
				d := Open("mem://", store, Options{partBytes: 256})
				if _, err := d.Publish(t.Context(), p1); err != nil {
					t.Fatal(err)
				}
				store.ops = 0
				failed := false
				store.fail = func(op int) (bool, bool) {
					fail := op == at || forGood && op > at
					failed = failed || fail
					return fail && !after, fail && after
				}
				second, p2 := snapshot("run", 2)
				_, err := d.Publish(t.Context(), p2)
				store.fail = func(int) (bool, bool) { return false, false }
				if err != nil {
					all, faults, e := d.Snapshots(t.Context())
					if e != nil || len(faults) > 0 || len(all) == 0 {
						t.Fatal(e, faults, all)
					}
					newest := before
					if all[0].Number == 2 { // only the answer was lost
						newest = second
					}
					dir := t.TempDir()
					if _, err := fetch(t, d, all[0], dir); err != nil {
						t.Fatalf("operation %d: %v", at, err)
					}
					wantFetched(t, dir, newest)
				}
				third, p3 := snapshot("run", 3)
				if _, err := d.Publish(t.Context(), p3); err != nil {
					t.Fatal(err)
				}
				all, _, err := d.Snapshots(t.Context())
				if err != nil || len(all) != 2 {
					t.Fatalf("operation %d: %d snapshots, %v", at, len(all), err)
				}
				wantSnapshots(t, d, third, all[0].Number, all[1].Number)
				if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:run")); err != nil {
					t.Fatal(err)
				}
				if len(store.files) > 0 {
					t.Errorf("operation %d: %d files are left", at, len(store.files))
				}
				if !failed {
					break
				}
			}
		}
	}
}

// TestFullDirectoryIsNotFilledUp checks that of several snapshots that could not be uploaded, only
// the last one leaves files, and that the next one that is uploaded deletes these.
func TestFullDirectoryIsNotFilledUp(t *testing.T) {
	store := &fullStore{memStore: newMemStore(), capacity: 1 << 40}
	d := Open("mem://", store, Options{partBytes: 256})
	first, p := snapshot("run", 1)
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	used := store.used()
	for n := 2; n <= 12; n++ {
		c, p := snapshot("run", n)
		store.capacity = used + c.bytes("dense")
		if _, err := d.Publish(t.Context(), p); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("snapshot %d: %v", n, err)
		}
		if left := store.names(pendingDir); len(left) != 1 {
			t.Fatalf("snapshot %d: %d that could not be uploaded are left", n, len(left))
		}
	}
	wantSnapshots(t, d, first, 1)
	store.capacity = 1 << 40
	last, p := snapshot("run", 13)
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	all, _, err := d.Snapshots(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d snapshots, %v", len(all), err)
	}
	wantSnapshots(t, d, last, all[0].Number, all[1].Number)
	store.clean(t)
}

// TestModelTakesTheRoomOfDeletedSnapshots fills the directory with snapshots, which a user then
// deletes. The model must be published in their place, also if a snapshot was partly uploaded
// before there was no room.
func TestModelTakesTheRoomOfDeletedSnapshots(t *testing.T) {
	store := &fullStore{memStore: newMemStore(), capacity: 1 << 40}
	d := Open("mem://", store, Options{partBytes: 256})
	for n := 1; n <= 2; n++ {
		if _, p := snapshot("job", n*10); n == 1 {
			if _, err := d.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		} else {
			store.capacity = store.used() + 600
			if _, err := d.Publish(t.Context(), p); !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}
	}
	model := night("job", 4)
	p := model.publication("job", 1)
	store.capacity = max(store.used(), model.bytes(""))
	if _, err := d.Publish(t.Context(), p); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	wantGenerations(t, d)
	for _, name := range store.names(snapshotsDir) {
		if err := store.Remove(t.Context(), path.Join(snapshotsDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantGenerations(t, d, 1)
	store.clean(t)
}

// TestOthersTakeTheRoom checks that a model for which there is no room, because another process
// uses all space that is freed, is not published, and that the error says so.
func TestOthersTakeTheRoom(t *testing.T) {
	store := &fullStore{memStore: newMemStore(), capacity: 0}
	store.after = func() {
		store.files[path.Join(objectsDir, objectOf(newID(), 1))] = memFile{data: []byte("of another process")}
	}
	_, err := Open("mem://", store, Options{}).Publish(t.Context(), night("job", 1).publication("job", 1))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "there is no space left: free some there") {
		t.Error(err)
	}
}

// TestSnapshotFetchFaults makes every operation that fetches a snapshot fail in turn. The next
// attempt must continue with what is there, and end with the same files.
func TestSnapshotFetchFaults(t *testing.T) {
	want, p := snapshot("run", 3)
	for at := 0; ; at++ {
		store := &faultyStore{memStore: newMemStore(), fail: func(int) (bool, bool) { return false, false }}
		d := Open("mem://", store, Options{partBytes: 256})
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name := range want {
			if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		get := func() error {
			all, _, err := d.Snapshots(t.Context())
			if err != nil {
				return err
			}
			_, err = fetch(t, d, all[0], dir)
			return err
		}
		store.ops = 0
		failed := false
		store.fail = func(op int) (bool, bool) { failed = failed || op == at; return op == at, false }
		err := get()
		store.fail = func(int) (bool, bool) { return false, false }
		if (err != nil) != failed {
			t.Fatalf("operation %d: %v", at, err)
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		wantFetched(t, dir, want)
		if !failed {
			return
		}
	}
}
