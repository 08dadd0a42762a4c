package ssd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// outdating is a table of two directories, the first of which was missing for a while during which
// the table was trained.
type outdating struct {
	*testing.T
	dirs []string
	opts sparsetable.Options
	rows map[uint64]float32 // of the table that went on
}

// newOutdating loses the first directory, trains without it, and brings it back under the same name.
// With replaced, the table was trained with a new directory of that name meanwhile, which the old one
// then hides, as a mounted disk does.
func newOutdating(t *testing.T, replaced bool) *outdating {
	at := t.TempDir()
	o := &outdating{T: t, dirs: []string{filepath.Join(at, "a"), filepath.Join(at, "b")}, rows: map[uint64]float32{}}
	o.opts = sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: o.dirs}}
	tabletest.CountInto(t, o.opts, o.rows, 0, 3000)
	o.must(os.Rename(o.dirs[0], o.dirs[0]+"-away"))
	if replaced {
		o.must(os.Mkdir(o.dirs[0], 0o755))
	}
	lossy := o.opts
	lossy.SSD.AllowLost = true
	tab, err := sparsetable.Open(t.Context(), lossy)
	o.must(err)
	o.rows = map[uint64]float32{}
	o.must(tab.Scan(t.Context(), func(key uint64, row []float32) error { o.rows[key] = row[0]; return nil }))
	if len(o.rows) == 0 || len(o.rows) == 3000 {
		t.Fatalf("%d rows are left", len(o.rows))
	}
	tabletest.Commit(t, tab, nil)
	o.must(tab.Close())
	next := o.opts
	if !replaced {
		next.SSD.Dirs = o.dirs[1:]
	}
	tabletest.CountInto(t, next, o.rows, 5000, 100)
	if replaced {
		o.must(os.RemoveAll(o.dirs[0])) // as a mounted disk hides what was there
	}
	o.must(os.Rename(o.dirs[0]+"-away", o.dirs[0]))
	return o
}

func (o *outdating) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// TestSSDOutdatedDirectory checks that a first directory that comes back after the table was
// trained without it is refused, with an error that names it and says what to do. With AllowLost it
// counts as lost. Nothing is lost if its files were moved elsewhere.
func TestSSDOutdatedDirectory(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		for _, reading := range []bool{true, false} {
			o := newOutdating(t, replaced)
			opts := o.opts
			opts.ReadOnly = reading
			tab, err := sparsetable.Open(t.Context(), opts)
			if err == nil {
				o.must(tab.Close())
				t.Fatalf("replaced %v: the older state opens", replaced)
			}
			if !errors.Is(err, sparsetable.ErrFiles) {
				t.Errorf("replaced %v: %v", replaced, err)
			}
			for _, part := range []string{"ends with snapshot 1", "snapshot 3", o.dirs[0], o.dirs[1], "move the table's files out of " + o.dirs[0]} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("replaced %v: %q lacks %q", replaced, err, part)
				}
			}
			opts = o.opts
			opts.SSD.AllowLost = true
			if reading && !replaced { // as the error says
				o.must(os.Rename(o.dirs[0], o.dirs[0]+"-moved"))
				opts = o.opts
			}
			tab, err = sparsetable.Open(t.Context(), opts)
			o.must(err)
			have := 0
			o.must(tab.Scan(t.Context(), func(key uint64, row []float32) error {
				if have++; o.rows[key] != row[0] {
					t.Errorf("replaced %v: key %x is %v, want %v", replaced, key, row[0], o.rows[key])
				}
				return nil
			}))
			if !replaced && have != len(o.rows) || have == 0 {
				t.Errorf("replaced %v: %d rows, want %d", replaced, have, len(o.rows))
			}
			tabletest.Commit(t, tab, nil)
			o.must(tab.Close())
		}
	}
}

// TestSSDCopiesAlone checks that Hold, KindIn and Remove recognize a table whose catalog is lost by
// the copies of the catalog.
func TestSSDCopiesAlone(t *testing.T) {
	at := t.TempDir()
	dirs := []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")}
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: dirs}}
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 3000)
	for _, dir := range dirs {
		if kind := sparsetable.KindIn(dir); kind != sparsetable.KindSSD {
			t.Errorf("%s: %q", dir, kind)
		}
	}
	if err := os.RemoveAll(filepath.Join(dirs[0], "catalog")); err != nil {
		t.Fatal(err)
	}
	held, err := sparsetable.Hold(o)
	if err != nil {
		t.Fatal(err)
	}
	if tab, err := sparsetable.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrInUse) {
		t.Errorf("a table that is held opens for writing: %v, %v", tab, err)
	}
	if err := sparsetable.Remove(dirs, false); !errors.Is(err, sparsetable.ErrInUse) {
		t.Errorf("a table that is held is removed: %v", err)
	}
	reading := o
	reading.ReadOnly = true
	tab, err := sparsetable.Open(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if other, err := sparsetable.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrInUse) {
		t.Errorf("a table that is read opens for writing: %v, %v", other, err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	tabletest.CountInto(t, o, rows, 0, 10)
	if err := os.RemoveAll(filepath.Join(dirs[0], "catalog")); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dirs[1], "0123456789abcdef-1.bucket")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sparsetable.Remove(dirs, false); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		names, err := os.ReadDir(dir)
		if err != nil || len(names) > 1 || len(names) == 1 && filepath.Join(dir, names[0].Name()) != other {
			t.Errorf("%s has %v, %v", dir, names, err)
		}
	}
}

// TestSSDTwoCatalogs checks the state that a process leaves if it opens a table although the first directory's catalog
// cannot be read, and dies before it commits a snapshot: a second directory then has a catalog, too. Without AllowLost,
// the error names the directory that cannot be read, and why. With it, the table can be opened, whether the disk still
// fails, reads well again, or has damaged the catalog.
func TestSSDTwoCatalogs(t *testing.T) {
	for _, how := range []string{"fails", "works", "damaged", "copied"} {
		o := &outdating{T: t, dirs: tabletest.InDirectories(t, 2).SSD.Dirs, rows: map[uint64]float32{}}
		o.opts = sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: o.dirs}}
		tabletest.CountInto(t, o.opts, o.rows, 0, 3000)
		bad := filepath.Join(o.dirs[0], "catalog")
		fail := func() {
			diskfault.Inject(func(op, path string) error {
				if op == "read" && strings.HasPrefix(path, bad+"/") {
					return syscall.EIO
				}
				return nil
			})
		}
		t.Cleanup(func() { diskfault.Inject(nil) })
		lossy := o.opts
		lossy.SSD.AllowLost = true
		fail()
		tab, err := sparsetable.Open(t.Context(), lossy)
		o.must(err)
		o.must(tab.Close())
		tab, err = sparsetable.Open(t.Context(), o.opts)
		var at *os.PathError
		if !errors.Is(err, syscall.EIO) || !errors.As(err, &at) || !strings.HasPrefix(at.Path, bad) {
			t.Fatalf("with a disk that fails, Open returns %v, %v", tab, err)
		}
		whole := false
		switch how {
		case "works":
			diskfault.Inject(nil)
			whole = true
		case "damaged":
			diskfault.Inject(nil)
			o.must(os.WriteFile(filepath.Join(bad, "HEAD"), []byte("nonsense"), 0o644))
		case "copied":
			diskfault.Inject(nil)
			files, err := filepath.Glob(filepath.Join(o.dirs[0], "*.bucket"))
			o.must(err)
			o.must(os.Link(files[0], filepath.Join(o.dirs[1], filepath.Base(files[0]))))
			if tab, err := sparsetable.Open(t.Context(), lossy); !errors.Is(err, sparsetable.ErrFiles) {
				t.Errorf("with a copied directory, Open returns %v, %v", tab, err)
			}
			o.must(os.Remove(filepath.Join(o.dirs[1], filepath.Base(files[0]))))
			whole = true
		}
		tab, err = sparsetable.Open(t.Context(), lossy)
		if err != nil {
			t.Errorf("%s: %v", how, err)
			continue
		}
		have := 0
		o.must(tab.Scan(t.Context(), func(uint64, []float32) error { have++; return nil }))
		if have == 0 || (have == len(o.rows)) != whole {
			t.Errorf("%s: %d of %d rows are left", how, have, len(o.rows))
		}
		if l := tab.(sparsetable.LossHandler).Lost(); !whole && (len(l.Dirs) != 1 || l.Dirs[0].Dir != o.dirs[0]) {
			t.Errorf("%s: %v are left out", how, l.Dirs)
		}
		o.must(tab.Close())
		diskfault.Inject(nil)
		if whole {
			tabletest.CountInto(t, o.opts, o.rows, 1000, 3000)
		}
	}
}
