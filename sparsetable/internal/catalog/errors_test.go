package catalog

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// openAndLoad reads everything in the catalog in fs.
func openAndLoad(fs vfs.FS, readOnly bool) error {
	c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs, ReadOnly: readOnly})
	if err != nil {
		return err
	}
	for _, s := range c.Snapshots() {
		_, e := c.Load(s.ID, func(uint32, []byte) error { return nil })
		err = errors.Join(err, e)
	}
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}

// TestDamageIsALine checks that an error is one line without the wording of Pebble, and names the
// table that is damaged or lost.
func TestDamageIsALine(t *testing.T) {
	src, _ := trainedCatalog(t, 8)
	files := contents(t, src)
	noticed := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		table := strings.HasSuffix(name, ".sst")
		if !table && !strings.HasPrefix(name, "MANIFEST") {
			continue
		}
		check := func(what string, harm func(fs vfs.FS, path string)) {
			damaged := copyOf(t, src)
			path := damaged.PathJoin("cat", name)
			harm(damaged, path)
			err := openAndLoad(damaged, true)
			if err == nil {
				return // an older manifest
			}
			noticed[what]++
			var bad *CorruptionError
			if !errors.As(err, &bad) {
				t.Errorf("%s %s: %v", name, what, err)
				return
			}
			for _, e := range joinedErrors(err) {
				text := e.Error()
				for _, word := range []string{"\n", "carrier", "pebble", "objstorage"} {
					if strings.Contains(text, word) {
						t.Errorf("%s %s: %q in %q", name, what, word, text)
					}
				}
			}
			if table && (bad.Dir != path || !strings.Contains(bad.Error(), path+" is damaged: ")) {
				t.Errorf("%s %s: blames %s: %v", name, what, bad.Dir, bad)
			}
			if !table && bad.Dir != path && bad.Dir != "cat" && !strings.HasSuffix(bad.Dir, ".sst") {
				t.Errorf("%s %s: blames %s: %v", name, what, bad.Dir, bad)
			}
		}
		for at := 0; at < len(files[name]); at += 1 + len(files[name])/20 {
			check("flipped", func(fs vfs.FS, path string) { flip(t, fs, path, int64(at)) })
			check("short", func(fs vfs.FS, path string) {
				f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
				if err == nil {
					_, err = f.Write(files[name][:at])
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}
		check("lost", func(fs vfs.FS, path string) {
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
		})
	}
	if noticed["flipped"] < 20 || noticed["short"] < 20 || noticed["lost"] < 3 {
		t.Errorf("noticed %v", noticed)
	}
}

func joinedErrors(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// TestJoinedDamageIsALine checks that another error that occurs together with the damage comes
// after it in the message.
func TestJoinedDamageIsALine(t *testing.T) {
	c := &Catalog{dir: "cat"}
	other := errors.New("closing failed")
	err := c.wrap(errors.Join(c.corrupt("HEAD", "it is short"), other), "open")
	if want := "catalog: cat is damaged in HEAD: it is short; closing failed"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if !errors.As(err, new(*CorruptionError)) || !errors.Is(err, other) {
		t.Errorf("%v lacks a part", err)
	}
}

// TestLostMarker checks that a database without the marker of its format's version counts as
// damaged.
func TestLostMarker(t *testing.T) {
	fs, _ := trainedCatalog(t, 9)
	lost := ""
	for name := range contents(t, fs) {
		if strings.HasPrefix(name, "marker.format-version.") {
			lost = name
		}
	}
	if err := fs.Remove(fs.PathJoin("cat", lost)); err != nil {
		t.Fatal(err)
	}
	for _, head := range []bool{true, false} {
		for _, readOnly := range []bool{true, false} {
			err := openAndLoad(fs, readOnly)
			if !errors.As(err, new(*CorruptionError)) || !strings.Contains(err.Error(), "marker.format-version") || strings.Contains(err.Error(), "pebble") {
				t.Errorf("HEAD %v, read-only %v: %v", head, readOnly, err)
			}
		}
		if head {
			if err := fs.Remove(fs.PathJoin("cat", HeadName)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestEmptyDirectory checks that an empty directory is no catalog, whatever lies beside
// it. Whether files of a table are left alone there is for the table to judge, which
// knows all of its directories.
func TestEmptyDirectory(t *testing.T) {
	for _, o := range []Options{{MustExist: true}, {ReadOnly: true}} {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("table/catalog", 0o777); err != nil {
			t.Fatal(err)
		}
		o.Dir, o.FS = "table/catalog", fs
		if _, err := Open(o); !errors.Is(err, ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestFailedLock checks that a catalog whose database has failed permanently can be opened again
// after it was closed, also by the same process: its lock is one of the operating system.
func TestFailedLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cat")
	var broken atomic.Bool
	faulty := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSync && strings.HasPrefix(filepath.Base(op.Path), "MANIFEST") {
			return errInjected
		}
		return nil
	}))
	open := func(fs vfs.FS) (*Catalog, error) {
		return Open(Options{Dir: dir, Format: testFormat, FS: fs})
	}
	c, err := open(faulty)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	m := (&model{}).reopened()
	m.train(rng)
	if err := m.commit(c, rng); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	next := m.clone()
	next.train(rng)
	if err := next.commit(c, rng); !errors.Is(err, ErrFailed) {
		t.Fatalf("%v, want ErrFailed", err)
	}
	if _, err := open(vfs.Default); !errors.Is(err, ErrInUse) {
		t.Errorf("before it is closed: %v, want ErrInUse", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	again, err := open(vfs.Default)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(again.Snapshots()); n < 1 || n > 2 {
		t.Errorf("%d snapshots, want the first one and perhaps the second", n)
	}
	shut(t, again)
}
