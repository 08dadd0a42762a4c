package remote

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
	"aibox/internal/testseed"
)

// copiesIn returns paths of copies of a record, in new directories.
func copiesIn(t *testing.T, dirs int) (paths []string) {
	t.Helper()
	for i := range dirs {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, "RECORD"))
	}
	return paths
}

// TestRecordCopies checks that each copy of a record suffices, whatever has happened to the others.
// If copies differ, a file counts as incomplete if any of them says so. If they belong to different
// generations, or none can be read, no file counts as complete.
func TestRecordCopies(t *testing.T) {
	_, m, c := late(t, testseed.Rand(t))
	const a, b = "table/0.bucket", "table/1.bucket"
	inA, inB := int64(len(c[a])), int64(len(c[b]))
	other := *m
	other.ID = "0123456789abcdef"
	record := func(m *Manifest, lacking ...string) *arrivingRecord {
		data, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		return &arrivingRecord{URI: "/r", Manifest: data, Lacking: lacking, Begun: true}
	}
	damage := func(path string) error { return os.WriteFile(path, []byte("{"), 0o644) }
	gone := func(path string) error { return os.Remove(path) }
	dirGone := func(path string) error { return os.RemoveAll(filepath.Dir(path)) }
	write := func(r *arrivingRecord) func(string) error {
		return func(path string) error { return r.write(path) }
	}
	damagedAsSaid := record(m, a)
	damagedAsSaid.Damaged = "it is known"
	for _, c := range []struct {
		what    string
		change  []func(path string) error // nil: the copy stays
		lacking int64                     // bytes; 0: there is no record
		damaged bool                      // the error is a DamagedError
		fault   string
		written int // copies there are after the record was opened
	}{
		{"all are there", []func(string) error{nil, nil, nil}, inA, false, "", 3},
		{"the first is gone", []func(string) error{gone, nil, nil}, inA, false, "", 3},
		{"one directory is left", []func(string) error{dirGone, dirGone, nil}, inA, false, "", 1},
		{"one is left, others are damaged", []func(string) error{damage, damage, nil}, inA, false, "", 3},
		{"one says that more lacks", []func(string) error{nil, write(record(m, b, a)), nil}, inA + inB, false, "", 3},
		{"one says that other files lack", []func(string) error{nil, nil, write(record(m, b))}, inA + inB, false, "", 3},
		{"one says that it is damaged", []func(string) error{nil, write(damagedAsSaid), nil}, inA, false, "it is known", 3},
		{"one is of another generation", []func(string) error{nil, nil, write(record(&other, a))}, 0, true, "", 0},
		{"all are damaged or gone", []func(string) error{damage, gone, damage}, 0, true, "", 0},
		{"all are gone", []func(string) error{gone, gone, gone}, 0, false, "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			paths := copiesIn(t, 3)
			for i, path := range paths {
				if err := record(m, a).write(path); err != nil {
					t.Fatal(err)
				}
				if f := c.change[i]; f != nil {
					if err := f(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			said, err := AnnouncedIn(paths...)
			if errors.As(err, new(*DamagedError)) != c.damaged || (err != nil) != c.damaged {
				t.Fatalf("it says %+v, %v", said, err)
			}
			if c.lacking == 0 {
				if said != nil {
					t.Errorf("it says %+v", said)
				}
				return
			}
			if said.LackingBytes != c.lacking || said.Manifest.ID != m.ID || said.Damaged != c.fault {
				t.Errorf("it says %+v, want %d bytes, %q", said, c.lacking, c.fault)
			}
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			a, err := Open("mem", newMemStore(), quiet).OpenArriving(paths, func(string) string { return file })
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Stop(); err != nil {
				t.Error(err)
			}
			written, contents := 0, []byte(nil)
			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					continue
				}
				written++
				if contents != nil && !bytes.Equal(data, contents) {
					t.Errorf("%s differs from the others", path)
				}
				contents = data
			}
			if written != c.written {
				t.Errorf("%d copies are there, want %d", written, c.written)
			}
		})
	}
}

// TestRecordsAreWrittenFirst makes each operation fail while files are announced, or their record
// is deleted. As long as a directory has a file that lacks bytes, it must have a copy of the
// record.
func TestRecordsAreWrittenFirst(t *testing.T) {
	_, m, _ := late(t, testseed.Rand(t))
	lacking := int64(0)
	for i := range m.Files {
		if f := &m.Files[i]; isLate(f) {
			lacking += f.Bytes
		}
	}
	for n, done := 0, false; !done; n++ {
		paths := copiesIn(t, 2)
		place := func(f *File) string { // they are spread over the directories
			return filepath.Join(filepath.Dir(paths[int(path.Base(f.Name)[0])%2]), path.Base(f.Name))
		}
		var ops atomic.Int64
		diskfault.Inject(func(string, string) error {
			if ops.Add(1) > int64(n) {
				return syscall.EIO
			}
			return nil
		})
		err := (&Directory{}).Announce(m, isLate, place, paths...)
		diskfault.Inject(nil)
		done = err == nil
		for i := range m.Files {
			f := &m.Files[i]
			if !isLate(f) || stat(place(f)) != nil {
				continue
			}
			for _, path := range paths {
				if stat(path) != nil {
					t.Fatalf("operation %d fails: a file lacks bytes, and there is no record at %s", n, path)
				}
			}
		}
		if err := (&Directory{}).Announce(m, isLate, place, paths...); err != nil { // the next process goes on
			t.Fatal(err)
		}
		if err := errors.Join(stat(paths[0]), stat(paths[1])); err != nil {
			t.Fatalf("operation %d fails: then a directory has no record: %v", n, err)
		}
		said, err := AnnouncedIn(paths...)
		if err != nil || said == nil || said.LackingBytes != lacking {
			t.Fatalf("operation %d fails: then it says %+v, %v", n, said, err)
		}
	}
}

// TestCopiesAreDeleted checks that no copy of the record is left when everything has arrived, even
// if a copy was made after an interruption.
func TestCopiesAreDeleted(t *testing.T) {
	s, m, c := late(t, testseed.Rand(t))
	d := Open("mem", s, quiet)
	dir := t.TempDir()
	paths := append(copiesIn(t, 2), filepath.Join(dir, "RECORD"))
	place := func(base string) string { return filepath.Join(dir, base) }
	if err := d.Announce(m, isLate, func(f *File) string { return place(path.Base(f.Name)) }, paths[1:]...); err != nil {
		t.Fatal(err)
	}
	a, err := d.OpenArriving(paths, place)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	if err := errors.Join(a.Wait(t.Context()), a.Stop()); err != nil {
		t.Fatal(err)
	}
	wantArrived(t, dir, c)
	if said, err := AnnouncedIn(paths...); said != nil || err != nil {
		t.Errorf("a copy of the record is still there: %+v, %v", said, err)
	}
}
