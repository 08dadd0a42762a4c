package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
	"aibox/internal/testseed"
)

// late returns a publication of bucket files of several chunks and parts, together with a file that
// is fetched at once.
func late(t *testing.T, rng *rand.Rand) (*memStore, *Manifest, contents) {
	t.Helper()
	c := contents{"dense": "dense parameters"}
	for i, n := range []int{5*chunkBytes + 777, 1, 2 * chunkBytes, 3*chunkBytes + 4096} {
		data := make([]byte, n)
		for j := range data {
			data[j] = byte(rng.Uint32())
		}
		c[fmt.Sprintf("table/%d.bucket", i)] = string(data)
	}
	s := newMemStore()
	o := quiet
	o.partBytes = 2*chunkBytes + 512
	if _, err := Open("mem", s, o).Publish(t.Context(), c.publication("a", 4)); err != nil {
		t.Fatal(err)
	}
	return s, wantGenerations(t, Open("mem", s, o), 4)[0], c
}

func isLate(f *File) bool { return strings.HasSuffix(f.Name, ".bucket") }

// announced makes the late files of m in a directory, and returns the path of the record.
func announced(t *testing.T, d *Directory, m *Manifest, dir string) (record string) {
	t.Helper()
	record = filepath.Join(dir, "RECORD")
	if err := d.Announce(m, isLate, func(f *File) string { return filepath.Join(dir, path.Base(f.Name)) }, record); err != nil {
		t.Fatal(err)
	}
	return record
}

func openArriving(t *testing.T, d *Directory, dir string) *Arriving {
	t.Helper()
	a, err := d.OpenArriving([]string{filepath.Join(dir, "RECORD")}, func(base string) string {
		if at := filepath.Join(dir, base); !os.IsNotExist(stat(at)) {
			return at
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func stat(path string) error {
	_, err := os.Stat(path)
	return err
}

// wantArrived fails the test unless all late files are complete, and nothing says otherwise.
func wantArrived(t *testing.T, dir string, c contents) {
	t.Helper()
	for name, want := range c {
		if !strings.HasSuffix(name, ".bucket") {
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, path.Base(name))); err != nil || string(got) != want {
			t.Errorf("%s is not what was published: %v", name, err)
		}
	}
	if !os.IsNotExist(stat(filepath.Join(dir, "RECORD"))) {
		t.Error("the record is still there")
	}
}

// TestArriving checks that bytes are there after they were awaited, that the rest is fetched in the
// background, and that no byte is fetched twice.
func TestArriving(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	d := Open("mem", s, quiet)
	dir := t.TempDir()
	announced(t, d, m, dir)
	a := openArriving(t, d, dir)
	names := a.order
	for range 12 {
		name := names[rng.IntN(len(names))]
		want := c["table/"+name]
		from := rng.IntN(len(want))
		to := from + rng.IntN(len(want)) // beyond the end, too
		if err := a.Await(name, int64(from), int64(to)); err != nil {
			t.Fatal(err)
		}
		if !a.Lacks(name) || !a.Here(name, int64(from), int64(to)) {
			t.Errorf("%s: [%d, %d) is awaited and not there, or the file counts as verified", name, from, to)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if to = min(to, len(want)); err != nil || !bytes.Equal(got[from:to], []byte(want[from:to])) {
			t.Errorf("%s: [%d, %d) has other bytes: %v", name, from, to, err)
		}
	}
	a.Start()
	if err := a.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantArrived(t, dir, c)
	if st := a.Stats(); st.FetchedBytes != st.TotalBytes || st.ArrivedBytes != st.TotalBytes || st.TotalBytes != m.Bytes()-int64(len(c["dense"])) || a.Lacks(names[0]) {
		t.Errorf("%+v", st)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
}

// TestArrivingInterrupted makes every operation of the store fail in turn, with all operations
// after it, while ranges are awaited and others are fetched in the background. Then the process
// ends, and another one completes the files. In between, the record must say that the files lack
// bytes.
func TestArrivingInterrupted(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	for n := 0; ; n++ {
		dir := t.TempDir()
		dying := &faultyStore{memStore: s, fail: func(op int) (bool, bool) { return op >= n, false }}
		d := Open("mem", dying, quiet)
		record := announced(t, d, m, dir)
		a := openArriving(t, d, dir)
		if rng.IntN(2) == 0 {
			a.Start()
		}
		failed := false
		for _, name := range a.order {
			for at := 0; at < len(c["table/"+name]); at += chunkBytes / 2 {
				err := a.Await(name, int64(at), int64(at+1))
				if err != nil && !errors.Is(err, errFault) {
					t.Fatal(err)
				}
				failed = failed || err != nil
			}
		}
		if err := a.Stop(); err != nil {
			t.Fatal(err)
		}
		said, err := AnnouncedIn(record)
		// A stream that the background had opened before may have brought all the same.
		if err != nil || said != nil && (said.Damaged != "" || said.Manifest.ID != m.ID || said.LackingBytes <= 0) {
			t.Fatalf("the record says %+v, %v", said, err)
		}
		if said != nil {
			announced(t, d, m, dir) // as a process that was killed before it opened the table
			arrive(t, openArriving(t, Open("mem", s, quiet), dir))
		}
		wantArrived(t, dir, c)
		if !failed {
			return
		}
	}
}

// TestArrivingDiskFaults makes every operation on the local disk fail in turn, with all operations
// after it, until the process ends. Another process must then complete the files.
func TestArrivingDiskFaults(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	d := Open("mem", s, quiet)
	t.Cleanup(func() { diskfault.Inject(nil) })
	for n := int64(0); ; n++ {
		dir := t.TempDir()
		var ops, failures atomic.Int64
		failed := make(chan struct{})
		diskfault.Inject(func(string, string) error {
			if ops.Add(1) <= n {
				return nil
			}
			if failures.Add(1) == 1 {
				close(failed)
			}
			return errFault
		})
		record := filepath.Join(dir, "RECORD")
		place := func(f *File) string { return filepath.Join(dir, path.Base(f.Name)) }
		err := d.Announce(m, isLate, place, record)
		var a *Arriving
		if err == nil {
			a, err = d.OpenArriving([]string{record}, func(base string) string { return filepath.Join(dir, base) })
		}
		if err == nil {
			a.Start()
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				<-failed
				stop()
			}()
			err = a.Wait(ctx)
			if e := a.Stop(); e != nil {
				t.Fatal(e)
			}
			if err == nil {
				close(failed)
			}
			stop()
		}
		diskfault.Inject(nil)
		if err == nil {
			wantArrived(t, dir, c)
			if n < 10 {
				t.Errorf("%d operations on the disk were asked for", n)
			}
			return
		}
		if !errors.Is(err, errFault) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		announced(t, d, m, dir)
		if stat(record) == nil {
			arrive(t, openArriving(t, d, dir))
		}
		wantArrived(t, dir, c)
	}
}

// TestArrivingDeadDisk checks that if the disk fails to which files are fetched, callers that wait
// for them get an error, and the next process continues. If the disk is full, the fetch waits until
// it is not.
func TestArrivingDeadDisk(t *testing.T) {
	s, m, c := late(t, testseed.Rand(t))
	d := Open("mem", s, quiet)
	t.Cleanup(func() { diskfault.Inject(nil) })
	for _, operation := range []string{"write", "sync", "remove"} { // the last one is of the record
		for _, fault := range []error{unix.EIO, unix.ENOSPC} {
			dir := t.TempDir()
			announced(t, d, m, dir)
			attempts := 0
			var mu sync.Mutex
			inject := func(op, path string) error {
				mu.Lock()
				defer mu.Unlock()
				if op != operation || fault == unix.ENOSPC && attempts > 20 {
					return nil
				}
				attempts++
				return fault
			}
			var waited error
			synctest.Test(t, func(t *testing.T) {
				a := openArriving(t, d, dir)
				diskfault.Inject(inject)
				a.Start()
				waited = a.Wait(t.Context())
				if err := a.Stop(); err != nil {
					t.Error(err)
				}
			})
			diskfault.Inject(nil)
			if fault == unix.EIO && !errors.Is(waited, fault) || fault == unix.ENOSPC && waited != nil {
				t.Errorf("%s fails with %v: %v", operation, fault, waited)
			}
			if waited != nil {
				arrive(t, openArriving(t, d, dir))
			}
			wantArrived(t, dir, c)
		}
	}
}

// TestArrivingDamaged checks that a damaged part is fetched again. If it is still damaged, the
// files cannot be completed, and the record says that, too.
func TestArrivingDamaged(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	for i := range m.Files {
		f := &m.Files[i]
		if !isLate(f) {
			continue
		}
		p := f.Parts[rng.IntN(len(f.Parts))]
		name := path.Join(objectsDir, p.Object)
		good := s.files[name]
		wrong := bytes.Clone(good.data)
		wrong[rng.IntN(len(wrong))] ^= 1
		for what, damage := range map[string]func(){
			"changed": func() { s.files[name] = memFile{data: wrong} },
			"missing": func() { delete(s.files, name) },
		} {
			damage()
			dir := t.TempDir()
			d := Open("mem", s, quiet)
			record := announced(t, d, m, dir)
			a := openArriving(t, d, dir)
			a.Start()
			var damaged *DamagedError
			if err := a.Wait(t.Context()); !errors.As(err, &damaged) || !strings.Contains(damaged.URI, name) {
				t.Errorf("%s is %s: %v", name, what, err)
			}
			if err := a.Stop(); err != nil {
				t.Fatal(err)
			}
			if said, err := AnnouncedIn(record); err != nil || said == nil || said.Manifest.ID != m.ID || !strings.Contains(said.Damaged, name) {
				t.Errorf("the record says %+v, %v", said, err)
			}
			// It is good again at the second attempt.
			damage()
			dir = t.TempDir()
			d = Open("mem", &healingStore{memStore: s, name: name, good: good}, quiet)
			announced(t, d, m, dir)
			a = openArriving(t, d, dir)
			a.Start()
			if err := a.Wait(t.Context()); err != nil || a.Stats().Again != 1 {
				t.Errorf("%s is %s at first: %+v, %v", name, what, a.Stats(), err)
			}
			if err := a.Stop(); err != nil {
				t.Fatal(err)
			}
			wantArrived(t, dir, c)
			// So it is for somebody who waits.
			damage()
			dir = t.TempDir()
			announced(t, d, m, dir)
			d = Open("mem", &healingStore{memStore: s, name: name, good: good}, quiet)
			a = openArriving(t, d, dir)
			if err := a.Await(path.Base(f.Name), 0, f.Bytes); err != nil {
				t.Errorf("%s is %s at first: %v", name, what, err)
			}
			arrive(t, a)
			wantArrived(t, dir, c)
			s.files[name] = good
		}
	}
}

// TestArrivingRecord checks that every changed byte of a record is detected.
func TestArrivingRecord(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, _ := late(t, rng)
	record := announced(t, Open("mem", s, quiet), m, t.TempDir())
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		wrong := bytes.Clone(data)
		wrong[rng.IntN(len(wrong))] ^= byte(1 << rng.IntN(8))
		if r, _, err := decodeRecord(wrong); err == nil && !slices.Equal(r.Lacking, []string{"table/0.bucket", "table/1.bucket", "table/2.bucket", "table/3.bucket"}) {
			t.Errorf("a changed record says %v", r.Lacking)
		}
	}
}

// TestArrivingRemoved checks that a file that the table has deleted is no longer needed.
func TestArrivingRemoved(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	d := Open("mem", s, quiet)
	dir := t.TempDir()
	announced(t, d, m, dir)
	for _, gone := range []string{"0.bucket", "2.bucket"} { // by an earlier process
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		delete(c, "table/"+gone)
	}
	a := openArriving(t, d, dir)
	if err := os.Remove(filepath.Join(dir, "3.bucket")); err != nil { // by this one
		t.Fatal(err)
	}
	delete(c, "table/3.bucket")
	arrive(t, a)
	wantArrived(t, dir, c)

	dir = t.TempDir()
	announced(t, d, m, dir)
	if err := openArriving(t, d, dir).Stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := os.Remove(filepath.Join(dir, fmt.Sprint(i, ".bucket"))); err != nil {
			t.Fatal(err)
		}
	}
	arrive(t, openArriving(t, d, dir))
	wantArrived(t, dir, nil)
}

// TestArrivingNameless checks that files can be fetched on a file system that reports of every file
// that it has no name, as it does for files in memory.
func TestArrivingNameless(t *testing.T) {
	s, m, c := late(t, testseed.Rand(t))
	d := Open("mem", s, quiet)
	dir := t.TempDir()
	announced(t, d, m, dir)
	for name, text := range c {
		path := filepath.Join(dir, filepath.Base(name))
		if !strings.HasSuffix(name, ".bucket") {
			continue
		}
		fd, err := unix.MemfdCreate("bucket", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := errors.Join(unix.Ftruncate(fd, int64(len(text))), os.Remove(path), os.Symlink(fmt.Sprintf("/proc/self/fd/%d", fd), path)); err != nil {
			t.Fatal(err)
		}
	}
	arrive(t, openArriving(t, d, dir))
	wantArrived(t, dir, c)
}

// arrive waits until all files are there.
func arrive(t *testing.T, a *Arriving) {
	t.Helper()
	a.Start()
	if err := errors.Join(a.Wait(t.Context()), a.Stop()); err != nil {
		t.Fatal(err)
	}
}

// TestArrivingAgain checks that bytes that were fetched and turn out to be wrong are fetched once
// more, even if others read them at the same time, and that the other bytes are not.
func TestArrivingAgain(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	f := &m.Files[slices.IndexFunc(m.Files, func(f File) bool { return f.Name == "table/0.bucket" })]
	object := path.Join(objectsDir, f.Parts[1].Object)
	good := s.files[object]
	wrong := bytes.Clone(good.data)
	wrong[chunkBytes+5] ^= 1
	s.files[object] = memFile{data: wrong}
	dir := t.TempDir()
	d := Open("mem", s, quiet)
	announced(t, d, m, dir)
	a := openArriving(t, d, dir)
	from := f.Parts[0].Bytes + chunkBytes
	read := func() bool {
		got, err := os.ReadFile(filepath.Join(dir, "0.bucket"))
		return err == nil && string(got[from:from+100]) == c[f.Name][from:from+100]
	}
	buf := make([]byte, 100)
	if err := a.Await("0.bucket", 0, from+100); err != nil || read() {
		t.Fatalf("the damage cannot be seen: %v", err)
	}
	s.files[object] = good
	before := a.Stats()
	if again, err := a.Again("0.bucket", buf, from); !again || err != nil || !read() || string(buf) != c[f.Name][from:from+100] {
		t.Errorf("it was not fetched again: %v, %v", again, err)
	}
	if now := a.Stats(); now.Again != before.Again+1 || now.ArrivedBytes != before.ArrivedBytes || now.FetchedBytes <= before.FetchedBytes || now.FetchedBytes > before.FetchedBytes+chunkBytes {
		t.Errorf("%+v, then %+v", before, now)
	}
	a.Start()
	if err := a.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantArrived(t, dir, c)
	fetched := a.Stats().FetchedBytes
	if again, err := a.Again("0.bucket", buf, from); !again || err != nil || a.Stats().FetchedBytes != fetched {
		t.Errorf("a file that was verified is fetched again: %v, %v", again, err)
	}
	if again, err := a.Again("other.bucket", buf, 0); again || err != nil {
		t.Errorf("a file that lacked nothing is fetched again: %v, %v", again, err)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
}

// TestArrivingLinks has the same files in two directories, as hard links, with a record in each.
// Fetched bytes must appear in both. A file that one directory deletes is still fetched for the
// other, and not fetched if both have deleted it.
func TestArrivingLinks(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	d := Open("mem", s, quiet)
	dirs := []string{t.TempDir(), t.TempDir()}
	records := []string{announced(t, d, m, dirs[0]), filepath.Join(dirs[1], "RECORD")}
	record, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(records[1], record, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		name := fmt.Sprint(i, ".bucket")
		if err := os.Link(filepath.Join(dirs[0], name), filepath.Join(dirs[1], name)); err != nil {
			t.Fatal(err)
		}
	}
	find := func(base string) string {
		for _, dir := range dirs {
			if at := filepath.Join(dir, base); stat(at) == nil {
				return at
			}
		}
		return ""
	}
	open := func() *Arriving {
		a, err := d.OpenArriving(records, find)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := open()
	if err := errors.Join(a.Await("3.bucket", 0, 10), a.Stop()); err != nil { // and the process is killed
		t.Fatal(err)
	}
	a = open()
	for _, at := range []string{filepath.Join(dirs[1], "1.bucket"), filepath.Join(dirs[0], "2.bucket"), filepath.Join(dirs[1], "2.bucket")} {
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	arrive(t, a)
	delete(c, "table/2.bucket")
	wantArrived(t, dirs[0], c)
	delete(c, "table/1.bucket")
	wantArrived(t, dirs[1], c)
}

// TestUnannounce checks that files that were announced, some of whose bytes have arrived, can be
// fetched completely after all, even if their record is damaged.
func TestUnannounce(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	d := Open("mem", s, quiet)
	for _, damaged := range []bool{false, true} {
		dir := t.TempDir()
		record := announced(t, d, m, dir)
		a := openArriving(t, d, dir)
		if err := errors.Join(a.Await("0.bucket", 0, 10), a.Stop()); err != nil {
			t.Fatal(err)
		}
		if damaged {
			if err := os.WriteFile(record, []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		place := func(f *File) string { return filepath.Join(dir, path.Base(f.Name)) }
		for range 2 { // the second time there is nothing to take back
			if err := Unannounce(m, place, record); err != nil {
				t.Fatal(err)
			}
		}
		f, err := d.Fetch(t.Context(), m, place)
		if err != nil || f.Moved == 0 {
			t.Fatalf("%+v, %v", f, err)
		}
		wantArrived(t, dir, c)
	}
}
