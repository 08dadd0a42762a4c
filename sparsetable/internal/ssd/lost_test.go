package ssd_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// losing is a table over several directories with a random history, together with the rows of its
// newest snapshot.
type losing struct {
	t     *testing.T
	rng   *rand.Rand
	opts  sparsetable.Options
	rows  map[uint64]float32 // as the table is now
	older map[uint64]float32 // as it was some time ago
}

func newLosing(t *testing.T, rng *rand.Rand, dirs int) *losing {
	l := &losing{t: t, rng: rng, rows: map[uint64]float32{}}
	at := t.TempDir()
	l.opts = sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, MemoryBytes: 8 << 20}
	for i := range dirs {
		l.opts.SSD.Dirs = append(l.opts.SSD.Dirs, filepath.Join(at, string(rune('a'+i))))
	}
	return l
}

func (l *losing) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *losing) open(o sparsetable.Options) sparsetable.Table {
	l.t.Helper()
	tab, err := sparsetable.Open(l.t.Context(), o)
	l.must(err)
	return tab
}

// work trains, flushes, expires, saves and reopens at random, and saves at the end.
func (l *losing) work(tab sparsetable.Table, steps int) sparsetable.Table {
	l.t.Helper()
	for step := range steps {
		switch n := l.rng.IntN(10); {
		case n < 6:
			l.train(tab, l.rng.IntN(40_000), 1+l.rng.IntN(5000))
		case n == 6:
			l.must(tab.(sparsetable.Flusher).Flush(l.t.Context()))
		case n < 9:
			l.save(tab)
		default:
			l.save(tab)
			l.must(tab.Close())
			tab = l.open(l.opts)
		}
		if step == steps/2 {
			l.older = maps.Clone(l.rows)
		}
	}
	l.save(tab)
	return tab
}

func (l *losing) train(tab sparsetable.Table, from, n int) {
	l.t.Helper()
	tabletest.CountRows(l.t, tab, l.rows, from, n)
}

// save takes a snapshot and drops all but the last two.
func (l *losing) save(tab sparsetable.Table) {
	l.t.Helper()
	tabletest.Commit(l.t, tab, nil)
	all, err := tab.Snapshots()
	l.must(err)
	for len(all) > 2 {
		l.must(tab.DropSnapshot(all[0].ID))
		all = all[1:]
	}
}

// content returns the rows that the table has.
func (l *losing) content(tab sparsetable.Table) map[uint64]float32 {
	l.t.Helper()
	have := map[uint64]float32{}
	l.must(tab.Scan(l.t.Context(), func(key uint64, row []float32) error {
		have[key] = row[0]
		return nil
	}))
	if n := tab.Stats().Rows; n != int64(len(have)) {
		l.t.Errorf("the table counts %d rows, a scan finds %d", n, len(have))
	}
	return have
}

// mapRows yields the rows of a map.
type mapRows struct {
	keys []uint64
	rows map[uint64]float32
	row  []float32
}

func mapSource(rows map[uint64]float32) *mapRows {
	return &mapRows{slices.Sorted(maps.Keys(rows)), rows, make([]float32, stressLayout.Words())}
}

func (r *mapRows) Next() (uint64, []float32, error) {
	if len(r.keys) == 0 {
		return 0, nil, io.EOF
	}
	key := r.keys[0]
	r.keys = r.keys[1:]
	r.row[0] = r.rows[key]
	stressLayout.SetStats(r.row, sparsetable.RowStats{Count: 1})
	return key, r.row, nil
}

// TestSSDLose loses each directory of a table in turn, after a random history. The rows of the
// other directories must be as in the snapshot. The lost rows are absent and can be restored from
// an earlier state, and the table must continue to work.
func TestSSDLose(t *testing.T) {
	rng := testseed.Rand(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		dirs := 2 + round%3
		l := newLosing(t, rng, dirs)
		if round%2 == 0 {
			l.opts.MemoryBytes = 5<<20 + int64(dirs-2)<<19 // rows leave the cache all the time
		}
		tab := l.open(l.opts)
		for from := 0; from < 40_000; from += 4000 {
			l.train(tab, from, 4000)
		}
		l.must(tab.(sparsetable.Flusher).Flush(t.Context())) // so that rows in delta files have older versions in buckets
		l.must(l.work(tab, 12).Close())
		reading := l.opts
		reading.ReadOnly = true
		tab = l.open(reading)
		dirOf := map[uint64]string{}
		for key := range l.rows {
			dirOf[key] = ssd.DirOfKey(tab, key)
		}
		l.must(tab.Close())
		for i := range dirs {
			for _, how := range []string{"missing", "empty", "not a directory", "failing"} {
				l.lose(i, how, dirOf)
			}
		}
	}
}

func dirHasRows(dirOf map[uint64]string, dir string) bool {
	for _, d := range dirOf {
		if d == dir {
			return true
		}
	}
	return false
}

// failing makes operations on files in a directory fail, although its names can be listed and the
// files opened.
func failing(dir string) func(operation, path string) error {
	return func(operation, path string) error {
		if strings.HasPrefix(path, dir+"/") && operation != "open" {
			return syscall.EIO
		}
		return nil
	}
}

// lose loses directory i of a copy of the table.
func (l *losing) lose(i int, how string, dirOf map[uint64]string) {
	t := l.t
	at := t.TempDir()
	c := &losing{t: t, rng: l.rng, opts: l.opts, rows: maps.Clone(l.rows)}
	c.opts.SSD.Dirs = nil
	for j, dir := range l.opts.SSD.Dirs {
		to := filepath.Join(at, filepath.Base(dir))
		c.opts.SSD.Dirs = append(c.opts.SSD.Dirs, to)
		switch {
		case j != i || how == "failing":
			l.must(os.CopyFS(to, os.DirFS(dir)))
		case how == "empty":
			l.must(os.Mkdir(to, 0o755))
		case how == "not a directory":
			l.must(os.WriteFile(to, nil, 0o644))
		}
	}
	if how == "empty" && dirHasRows(dirOf, l.opts.SSD.Dirs[i]) {
		if tab, err := sparsetable.Open(t.Context(), c.opts); !errors.Is(err, sparsetable.ErrFiles) {
			t.Errorf("without AllowLost: %v", err)
			if err == nil {
				_ = tab.Close()
			}
		}
	}
	allowed := c.opts
	allowed.SSD.AllowLost = true
	if how == "failing" {
		diskfault.Inject(failing(c.opts.SSD.Dirs[i]))
		defer diskfault.Inject(nil)
	}
	tab := c.open(allowed)
	have := c.content(tab)
	for key, value := range have {
		if want, ok := l.rows[key]; !ok || value != want {
			t.Fatalf("lost %d, %s: key %x is %v, was %v, %v", i, how, key, value, want, ok)
		}
	}
	handler := tab.(sparsetable.LossHandler)
	lost := handler.Lost()
	if lost == nil { // the directory had no row yet
		if !maps.Equal(have, l.rows) {
			t.Errorf("lost %d, %s: nothing is said to be lost, but %d of %d rows are left", i, how, len(have), len(l.rows))
		}
		c.must(tab.Close())
		return
	}
	if lost.Rows != int64(len(l.rows)-len(have)) || lost.TotalRows != int64(len(l.rows)) || len(lost.Dirs) != 1 || lost.Dirs[0].Dir != c.opts.SSD.Dirs[i] || lost.Dirs[0].Replaced != (how == "empty") {
		t.Errorf("lost %d, %s: %+v, but %d of %d rows are left", i, how, lost, len(have), len(l.rows))
	}
	if err := lost.Dirs[0].Err; errors.Is(err, syscall.EIO) != (how == "failing") || errors.Is(err, fs.ErrNotExist) != (how == "missing") {
		t.Errorf("lost %d, %s: the reason is %v", i, how, err)
	}
	wrong := 0
	for key := range l.rows {
		_, ok := have[key]
		if ok == (dirOf[key] == l.opts.SSD.Dirs[i]) {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("lost %d, %s: %d rows of other directories are lost, or of this one are left", i, how, wrong)
	}
	// Refill from an earlier state.
	older := map[uint64]float32{}
	for key := range l.older {
		older[key] = -l.older[key]
	}
	n, err := handler.Refill(t.Context(), mapSource(older))
	l.must(err)
	now := c.content(tab)
	added := int64(0)
	for key, value := range now {
		before, ok := have[key]
		switch {
		case ok && before == value:
		case !ok && older[key] == value:
			added++
		default:
			t.Fatalf("lost %d, %s: after Refill key %x is %v, was %v, %v", i, how, key, value, before, ok)
		}
	}
	if added != n {
		t.Errorf("lost %d, %s: Refill says %d rows, %d were added", i, how, n, added)
	}
	for key := range older {
		if _, ok := now[key]; !ok && l.rows[key] != 0 {
			t.Fatalf("lost %d, %s: key %x was lost and not filled in", i, how, key)
		}
	}
	if again, err := handler.Refill(t.Context(), mapSource(older)); again != 0 || err != nil {
		t.Errorf("lost %d, %s: a second Refill adds %d rows: %v", i, how, again, err)
	}
	// The table goes on, and is whole after a snapshot.
	c.rows = now
	if how != "empty" {
		c.opts.SSD.Dirs = slices.Delete(slices.Clone(c.opts.SSD.Dirs), i, i+1)
	}
	tab = c.work(tab, 4)
	all, err := tab.Snapshots()
	c.must(err)
	for _, s := range all[:len(all)-1] { // the older ones may still lack files
		c.must(tab.DropSnapshot(s.ID))
	}
	c.must(tab.Close())
	tab = c.open(c.opts)
	if got := c.content(tab); !maps.Equal(got, c.rows) {
		t.Errorf("lost %d, %s: the table opens with %d rows, want %d", i, how, len(got), len(c.rows))
	}
	if l := tab.(sparsetable.LossHandler).Lost(); l != nil {
		t.Errorf("a whole table has lost %+v", l)
	}
	c.must(tab.Close())
	faults, err := sparsetable.Verify(context.Background(), c.opts, func(f sparsetable.Fault) { t.Error(f) }, nil)
	if err != nil {
		t.Error(faults, err)
	}
}
