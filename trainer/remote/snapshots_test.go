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

// snapshot is the n-th snapshot of a run: bucket files that were written between two
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

// ofOwner takes what an owner has published.
func ofOwner(owner string) func(*Manifest) bool {
	return func(m *Manifest) bool { return m.Owner == owner }
}

// wantSnapshots fails the test unless the directory has snapshots with these numbers, which
// are whole, and the newest is what was uploaded.
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

// TestSnapshots: of each snapshot only what is new is uploaded, and of a file that has grown
// the bytes that were added. Two of a run stay. Generations and other runs are not touched,
// and share files with them; in the end nothing is left.
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

// TestRemoveSnapshotsFaults: the removal of a run's snapshots and priority saves ends at each of its
// operations in turn. The next one removes what was left, also files that no manifest names any more.
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

// TestSnapshotFaults: every operation of uploads fails in turn, before or after it was done,
// once or for good. The snapshot that was there before stays whole; once the directory
// works again, the next one is uploaded, and nothing is left over.
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

// TestFullDirectoryIsNotFilledUp: of snapshots that cannot be uploaded one after the other, only
// the last has left files, and the next one that is uploaded deletes these.
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

// TestModelTakesTheRoomOfDeletedSnapshots: where snapshots have filled the directory, and somebody
// deletes them, the model is published in their place. What was uploaded of a snapshot before there
// was no room is in nobody's way either.
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

// TestOthersTakeTheRoom: a model for which there is no room, since another process takes all that
// is deleted, is not published, and the error says so.
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

// TestSnapshotFetchFaults: every operation that fetches a snapshot fails in turn; the next
// attempt goes on with what is there and ends with the same files.
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
