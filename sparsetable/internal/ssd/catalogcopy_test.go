package ssd_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDCatalogLost checks that if the catalog is lost or any of its files is damaged, its copy is
// used for reading and for writing, and a message says so.
func TestSSDCatalogLost(t *testing.T) {
	at := t.TempDir()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{
		Dirs: []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")},
	}}
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 3000)
	tabletest.CountInto(t, o, rows, 1000, 3000)
	catalog := filepath.Join(o.SSD.Dirs[0], "catalog")
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	open := func(what string, n int) {
		t.Helper()
		log.Reset()
		reading := o
		reading.ReadOnly, reading.Layout = true, sparsetable.Layout{}
		tab, err := sparsetable.Open(t.Context(), reading)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		found := 0
		err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
			if found++; rows[key] != row[0] {
				t.Errorf("%s: key %x holds %v, want %v", what, key, row[0], rows[key])
			}
			return nil
		})
		if err = errors.Join(err, tab.Close()); err != nil || found != len(rows) {
			t.Errorf("%s: %d rows, want %d: %v", what, found, len(rows), err)
		}
		if !strings.Contains(log.String(), "its copy is used") {
			t.Errorf("%s: the log says %q", what, log.String())
		}
		tabletest.CountInto(t, o, rows, n, 100)
		log.Reset()
		tabletest.CountInto(t, o, rows, n, 100)
		if strings.Contains(log.String(), "WARN") {
			t.Errorf("%s: after the catalog was made anew, the log says %q", what, log.String())
		}
	}
	if err := os.RemoveAll(catalog); err != nil {
		t.Fatal(err)
	}
	open("no catalog", 0)
	for round := range 2 {
		err := filepath.WalkDir(catalog, func(path string, d fs.DirEntry, err error) error {
			name := d.Name()
			if err != nil || d.IsDir() || name == "LOCK" || strings.HasPrefix(name, "OPTIONS-") || strings.HasPrefix(name, "marker.") || round == 0 && name == "HEAD" {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return nil // it was deleted when the catalog was made anew
			}
			if strings.HasSuffix(name, ".sst") && round == 1 {
				b = b[:len(b)/2]
			} else {
				b[len(b)/3] ^= 4
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				return err
			}
			open("damaged "+name, 100*len(name))
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// TestSSDRemoveUnfinishedCatalog checks that nothing is left of a table that is removed after its
// catalog was only partly restored from a copy.
func TestSSDRemoveUnfinishedCatalog(t *testing.T) {
	at := t.TempDir()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: []string{filepath.Join(at, "a"), filepath.Join(at, "b")}}}
	tabletest.CountInto(t, o, map[uint64]float32{}, 0, 1000)
	if err := os.RemoveAll(filepath.Join(o.SSD.Dirs[0], "catalog")); err != nil {
		t.Fatal(err)
	}
	diskfault.Inject(func(op, path string) error {
		if op == "write" && strings.Contains(path, "catalog.new/") {
			return syscall.ENOSPC
		}
		return nil
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	if tab, err := sparsetable.Open(t.Context(), o); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v, %v", tab, err)
	}
	diskfault.Inject(nil)
	if err := sparsetable.Remove(o.SSD.Dirs, true); err != nil {
		t.Fatal(err)
	}
	for _, dir := range o.SSD.Dirs {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s has %v, %v", dir, names, err)
		}
	}
}

// TestVerifyCatalogs checks that Verify finds damage of the catalog, although the table then uses a
// copy, and damage of the copies, although the table does not need them.
func TestVerifyCatalogs(t *testing.T) {
	at := t.TempDir()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{
		Dirs: []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")},
	}}
	tabletest.CountInto(t, o, map[uint64]float32{}, 0, 3000)
	one := func(pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(at, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		return found[0]
	}
	for _, c := range []struct{ file, named string }{
		{"b/*.catalog/COPY", "b/*.catalog"},
		{"c/*.catalog/*.sst", "c/*.catalog"},
		{"a/catalog/HEAD", "a/catalog"},
		{"a/catalog/*.sst", "a/catalog"},
	} {
		path := one(c.file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := flipByte(path, int64(len(whole)/3)); err != nil {
			t.Fatal(err)
		}
		var faults []sparsetable.Fault
		_, err = sparsetable.Verify(t.Context(), o, func(f sparsetable.Fault) { faults = append(faults, f) }, nil)
		if err != nil || len(faults) != 1 || faults[0].File != one(c.named) {
			t.Errorf("damaged %s: %v, %v", c.file, faults, err)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sparsetable.Verify(t.Context(), o, func(f sparsetable.Fault) { t.Error(f) }, nil); err != nil {
		t.Error(err)
	}
}

// TestSSDCopyBesideCatalog checks that the directory in which the catalog is restored no longer has
// a copy of it, since nothing would keep that copy up to date.
func TestSSDCopyBesideCatalog(t *testing.T) {
	at := t.TempDir()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{
		Dirs: []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")},
	}}
	tabletest.CountInto(t, o, map[uint64]float32{}, 0, 1000)
	o.SSD.AllowLost = true
	if err := os.RemoveAll(o.SSD.Dirs[0]); err != nil {
		t.Fatal(err)
	}
	tab, err := sparsetable.Open(t.Context(), o)
	if err == nil {
		err = tab.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int{"b": 0, "c": 1} {
		if copies, err := filepath.Glob(filepath.Join(at, dir, "*.catalog")); err != nil || len(copies) != want {
			t.Errorf("%s has %v, %v, want %d copies", dir, copies, err, want)
		}
	}
}
