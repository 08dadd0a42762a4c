package ssd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// flipped is a closed table on real files, together with the rows that it has.
type flipped struct {
	files map[string][]byte // by path within the table's directory
	rows  map[uint64]float32
	id    uint64 // of its snapshot
	opts  func(dir string) sparsetable.Options
}

// makeFlipped trains a table. Most of its rows are in buckets, and the rest in a delta file.
func makeFlipped(t *testing.T) *flipped {
	t.Helper()
	f := &flipped{files: map[string][]byte{}, rows: map[uint64]float32{}}
	f.opts = func(dir string) sparsetable.Options {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: dir, Layout: stressLayout}
		o.MemoryBytes = smallest(o.Layout, o.SSD, 1000) + 64<<10
		return o
	}
	dir := t.TempDir()
	tab, err := sparsetable.Open(t.Context(), f.opts(dir))
	if err != nil {
		t.Fatal(err)
	}
	for from := uint64(1); from < 8000; from += 500 {
		keys := make([]uint64, 500)
		for i := range keys {
			keys[i] = (from + uint64(i)) * 0x9e3779b97f4a7c15
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			f.rows[k] = float32(k >> 41)
			ws.Row(i)[0] = f.rows[k]
			stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
	}
	ssd.StopBackground(tab) // so that no file is written after the snapshot
	f.id = tabletest.Commit(t, tab, []byte("record")).ID
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f.files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes the original files of the table into dir.
func (f *flipped) write(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, b := range f.files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, b, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

// errTouched says that Open found damage but changed files all the same.
var errTouched = errors.New("files were changed")

// untouched returns an error if files with rows are missing from dir or have another length.
func (f *flipped) untouched(dir string) (err error) {
	for name, b := range f.files {
		if strings.HasPrefix(name, "catalog") {
			continue
		}
		info, e := os.Stat(filepath.Join(dir, name))
		if e != nil || info.Size() != int64(len(b)) {
			err = fmt.Errorf("%w: %s: %w", errTouched, name, e)
		}
	}
	return err
}

// errWrongRows says that a damaged table returned wrong rows, which it must never do.
var errWrongRows = errors.New("wrong rows")

// read opens the table in dir and reads all of it, by lookups and by a scan.
func (f *flipped) read(t *testing.T, dir string, readOnly bool) (err error) {
	o := f.opts(dir)
	o.ReadOnly = readOnly
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		return errors.Join(err, f.untouched(dir))
	}
	defer func() { err = errors.Join(err, tab.Close()) }()
	infos, err := tab.Snapshots()
	if err != nil {
		return err
	}
	if len(infos) != 1 || infos[0].ID != f.id || string(infos[0].Record) != "record" {
		return fmt.Errorf("%w: snapshots %+v", errWrongRows, infos)
	}
	var keys []uint64
	lookup := func() error {
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		if err != nil {
			return err
		}
		defer ws.Release()
		for i, k := range keys {
			if !ws.Found(i) || ws.Row(i)[0] != f.rows[k] {
				return fmt.Errorf("%w: key %x holds %v, want %v", errWrongRows, k, ws.Row(i), f.rows[k])
			}
		}
		keys = keys[:0]
		return nil
	}
	for k := range f.rows {
		if keys = append(keys, k); len(keys) == 400 {
			if err := lookup(); err != nil {
				return err
			}
		}
	}
	if err := lookup(); err != nil {
		return err
	}
	rows := 0
	err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
		rows++
		if want, ok := f.rows[key]; !ok || row[0] != want {
			return fmt.Errorf("%w: key %x holds %v, want %v", errWrongRows, key, row[0], want)
		}
		return nil
	})
	if err == nil && rows != len(f.rows) {
		err = fmt.Errorf("%w: %d, want %d", errWrongRows, rows, len(f.rows))
	}
	return err
}

// TestFlips flips bits in the files of a closed table. If a bit matters, opening or reading must
// report the damage; if it does not (in a superseded bucket or in padding), all rows must be there.
// Without an id, Open must take the newest snapshot or none, and if the catalog is damaged, no rows
// may be deleted.
func TestFlips(t *testing.T) {
	const flips = 40 // of each kind of file
	seed := testseed.Of(t)
	f := makeFlipped(t)
	dir := filepath.Join(t.TempDir(), "table")
	f.write(t, dir)
	if err := f.read(t, dir, true); err != nil {
		t.Fatalf("undamaged: %v", err)
	}
	kinds := map[string]func(name string) bool{
		"buckets": func(name string) bool { return strings.HasSuffix(name, ".bucket") },
		"delta":   func(name string) bool { return strings.HasSuffix(name, ".delta") },
		"catalog": func(name string) bool { return strings.HasPrefix(name, "catalog") },
	}
	for kind, of := range kinds {
		t.Run(kind, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(len(kind))))
			var names []string
			for name, b := range f.files {
				if of(name) && len(b) > 0 {
					names = append(names, name)
				}
			}
			if len(names) == 0 {
				t.Fatal("no such files")
			}
			found := 0
			for i := range flips {
				name := names[i%len(names)]
				at := rng.IntN(len(f.files[name]))
				bit := byte(1) << rng.IntN(8)
				f.write(t, dir)
				damaged := append([]byte(nil), f.files[name]...)
				damaged[at] ^= bit
				if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o666); err != nil {
					t.Fatal(err)
				}
				err := f.read(t, dir, i%2 == 0)
				var corrupt *sparsetable.CorruptionError
				switch {
				case err == nil:
				case errors.Is(err, errTouched) && kind == "catalog":
					t.Errorf("%s, byte %d of %d, bit %#x: %v", name, at, len(damaged), bit, err)
				case errors.As(err, &corrupt):
					found++
					if kind != "catalog" && filepath.Base(corrupt.File) != filepath.Base(name) {
						t.Errorf("%s, byte %d, bit %#x: blames %v", name, at, bit, err)
					}
				default:
					t.Errorf("%s, byte %d of %d, bit %#x: %v", name, at, len(damaged), bit, err)
				}
			}
			t.Logf("%d of %d flips noticed", found, flips)
			// Most of a small table's bucket files is dead.
			if found == 0 {
				t.Errorf("none of %d flips noticed", flips)
			}
		})
	}
}
