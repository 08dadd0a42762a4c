package ssd_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDLostFile loses a file to which only an older snapshot refers. The newest snapshot can be
// opened, with a warning, and used. The older one cannot be opened, but can be dropped.
func TestSSDLostFile(t *testing.T) {
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: stressLayout}
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 3000)
	old, err := filepath.Glob(filepath.Join(o.Dir, "*.bucket"))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	before, err := tab.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	tabletest.CountInto(t, o, rows, 0, 3000) // every bucket is written anew
	lost := slices.DeleteFunc(old, func(path string) bool { _, err := os.Stat(path); return err != nil })
	if len(lost) == 0 {
		t.Fatal("the older snapshot has no file")
	}
	for _, path := range lost {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	tabletest.CountInto(t, o, rows, 0, 100)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), filepath.Base(lost[0])) {
		t.Errorf("the log says %q", log.String())
	}
	older := o
	older.SnapshotID, older.ReadOnly = before[0].ID, true
	if _, err := sparsetable.Open(t.Context(), older); !errors.Is(err, sparsetable.ErrFiles) {
		t.Errorf("the older snapshot: %v", err)
	}
	if tab, err = sparsetable.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tab.DropSnapshot(before[0].ID), tab.Close()); err != nil {
		t.Error(err)
	}
	tabletest.CountInto(t, o, rows, 0, 100)
}

// TestSSDLostDirectory checks that the loss of any directory is an error that names it, whether the
// directory does not exist, as after a disk has failed, or is empty, as if its file system is not
// mounted.
func TestSSDLostDirectory(t *testing.T) {
	at := t.TempDir()
	dirs := []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")}
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: slices.Clone(dirs)}}
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 3000)
	for i, dir := range dirs {
		if err := os.Rename(dir, dir+"-lost"); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} { // for writing, the directory is made
			for _, empty := range []bool{false, true} {
				if empty {
					if err := os.MkdirAll(dir, 0o777); err != nil {
						t.Fatal(err)
					}
				}
				o := o
				o.ReadOnly, o.MustExist, o.Layout = readOnly, readOnly, sparsetable.Layout{}
				tab, err := sparsetable.Open(t.Context(), o)
				if err == nil {
					t.Fatalf("a table without %s opens: %v", dir, tab.Close())
				}
				missing := !empty && readOnly && errors.Is(err, fs.ErrNotExist)
				if !missing && !errors.Is(err, sparsetable.ErrFiles) || !strings.Contains(err.Error(), dir) {
					t.Errorf("without %s, empty %v, read only %v: %v", dir, empty, readOnly, err)
				}
				if i > 0 && !missing && !strings.HasSuffix(err.Error(), "no file of the table is in "+dir) {
					t.Errorf("the error does not say that %s is empty: %v", dir, err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Rename(dir+"-lost", dir); err != nil {
			t.Fatal(err)
		}
	}
	tabletest.CountInto(t, o, rows, 0, 100)
}

// TestSSDMixedCopies trains a table and its copy in different ways. A directory of one and a
// directory of the other must not be accepted as a table, although both tables wrote as many files.
func TestSSDMixedCopies(t *testing.T) {
	at := t.TempDir()
	table := func(names ...string) sparsetable.Options {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout}
		for _, name := range names {
			o.SSD.Dirs = append(o.SSD.Dirs, filepath.Join(at, name))
		}
		return o
	}
	keys := tabletest.KeysFrom(0, 3000)
	train := func(o sparsetable.Options, value float32) {
		t.Helper()
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			ws.Row(i)[0] = value
			stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
		if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		tabletest.Commit(t, tab, nil)
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	original, copied := table("a", "b"), table("a-copy", "b-copy")
	train(original, 1)
	for i, dir := range original.SSD.Dirs {
		if err := os.CopyFS(copied.SSD.Dirs[i], os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	train(original, 2)
	train(copied, 3)
	for _, o := range []sparsetable.Options{table("a", "b-copy"), table("b", "a-copy")} {
		o.ReadOnly = true
		tab, err := sparsetable.Open(t.Context(), o)
		if !errors.Is(err, sparsetable.ErrFiles) {
			t.Errorf("%v: %v", o.SSD.Dirs, err)
		}
		if err != nil {
			continue
		}
		values := map[float32]int{}
		err = tab.Scan(t.Context(), func(_ uint64, row []float32) error { values[row[0]]++; return nil })
		t.Errorf("%v opens, with so many rows of each value: %v, %v", o.SSD.Dirs, values, errors.Join(err, tab.Close()))
	}
}

// TestSSDLostFilesTakeNoSpace checks that lost delta files are not counted as used space of another
// directory.
func TestSSDLostFilesTakeNoSpace(t *testing.T) {
	l := newLosing(t, testseed.Rand(t), 2)
	tab := l.open(l.opts)
	l.train(tab, 0, 3000) // they are in no bucket
	l.save(tab)
	l.must(tab.Close())
	l.must(os.RemoveAll(l.opts.SSD.Dirs[1]))
	l.opts.SSD.AllowLost = true
	tab = l.open(l.opts)
	defer tab.Close()
	d, err := tab.(sparsetable.Detailer).Details(t.Context())
	l.must(err)
	taken, n := int64(0), 0
	for name := range tabletest.RowFiles(t, l.opts) {
		info, err := os.Stat(filepath.Join(l.opts.SSD.Dirs[0], name))
		l.must(err)
		taken, n = taken+info.Size(), n+1
	}
	if have := d.Directories[0]; have.DiskBytes != taken || have.Files != n || taken == 0 {
		t.Errorf("%d files of %d bytes are left, counted are %+v", n, taken, have)
	}
}
