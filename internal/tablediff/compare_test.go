package tablediff

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/internal/testtools"
	"aibox/sparsetable"
)

// model is a table as a map: the values of a row, and its show.
type model map[uint64][]float32

// TestCompare compares random tables of both kinds with an oracle over maps, in one
// partition and in many.
func TestCompare(t *testing.T) {
	rng := testseed.Rand(t)
	for _, kinds := range [][2]string{{sparsetable.KindMemory, sparsetable.KindMemory}, {sparsetable.KindSSD, sparsetable.KindSSD}, {sparsetable.KindMemory, sparsetable.KindSSD}} {
		from, to, fields := randomModels(rng)
		a, b := table(t, kinds[0], 3, from), table(t, kinds[1], 3, to)
		for _, memory := range []int64{1 << 30, 40 << 10, 4 << 10} {
			passes := map[int]bool{}
			o := Options{MemoryBytes: memory, Top: 7, Fields: []string{"a", "b"}, Keys: keysOf(fields), Progress: func(_ string, n, of int) {
				passes[n] = true
				if n > of {
					t.Errorf("partition %d of %d", n, of)
				}
			}}
			got, err := Compare(t.Context(), a, b, o)
			if err != nil {
				t.Fatal(err)
			}
			if many := len(passes) > 1; many != (memory < 1<<30) {
				t.Errorf("%d bytes of memory: %d partitions", memory, len(passes))
			}
			check(t, got, from, to, fields)
		}
	}
}

// randomModels draws two tables that share most of their keys, and the fields of some.
func randomModels(rng *rand.Rand) (from, to model, fields map[uint64]int) {
	from, to, fields = model{}, model{}, map[uint64]int{}
	for i := range 2000 + rng.IntN(100) {
		key := rng.Uint64()
		if i%3 == 0 {
			key = uint64(i) // keys of an imported table may be consecutive
		}
		row := []float32{rng.Float32(), rng.Float32(), rng.Float32()}
		moved := slices.Clone(row)
		switch rng.IntN(5) {
		case 0:
			from[key] = row
		case 1:
			to[key] = row
		case 2:
			from[key], to[key] = row, row
		default:
			moved[rng.IntN(3)] += rng.Float32()
			from[key], to[key] = row, moved
		}
		if rng.IntN(4) > 0 {
			fields[key] = rng.IntN(2)
		}
	}
	return from, to, fields
}

// keysOf visits the fields of keys, and some keys as if a second field had them too.
func keysOf(fields map[uint64]int) func(context.Context, func(int, uint64)) error {
	return func(_ context.Context, visit func(int, uint64)) error {
		for key, field := range fields {
			if field == 0 && key%2 == 0 {
				visit(1, key)
			}
			visit(field, key)
			visit(1, key+1<<40) // a key that no table has
		}
		return nil
	}
}

// check compares a report with what the maps say.
func check(t *testing.T, got *Report, from, to model, fields map[uint64]int) {
	t.Helper()
	groups := []Group{{Field: "a"}, {Field: "b"}, {}}
	total := Group{}
	var moved []Row
	keys := maps.Clone(from)
	maps.Copy(keys, to)
	for key := range keys {
		before, has := from[key]
		after, gets := to[key]
		g := &groups[2]
		if f, ok := fields[key]; ok {
			g = &groups[f]
		}
		for _, g := range []*Group{g, &total} {
			if has {
				g.Before++
			}
			if gets {
				g.After++
			}
			switch {
			case !has:
				g.Added++
			case !gets:
				g.Dropped++
			case !slices.Equal(before, after):
				g.Moved++
			}
		}
		if has && gets && !slices.Equal(before, after) {
			sum := 0.0
			for i := range before {
				sum += math.Pow(float64(before[i])-float64(after[i]), 2)
			}
			moved = append(moved, Row{Key: key, Field: g.Field, Distance: Float(math.Sqrt(sum))})
		}
	}
	for i, want := range append(groups, total) {
		have := got.Total
		if i < len(groups) {
			have = got.Fields[i]
		}
		have.sum, have.MeanDistance, have.MaxDistance = 0, 0, 0
		if have != want {
			t.Errorf("group %d: %+v, want %+v", i, have, want)
		}
	}
	slices.SortFunc(moved, func(a, b Row) int { return compareRows(&a, &b) })
	if len(got.Moved) != 7 || got.Total.MaxDistance != moved[0].Distance {
		t.Fatalf("%d rows, the farthest %v; want 7, the first by %v", len(got.Moved), got.Total.MaxDistance, moved[0].Distance)
	}
	for i, r := range got.Moved {
		if r.Key != moved[i].Key || r.Field != moved[i].Field || r.Distance != moved[i].Distance || r.ShowBefore != 2 || r.ShowAfter != 2 {
			t.Errorf("row %d that moved farthest: %+v, want %+v", i, r, moved[i])
		}
	}
}

// table makes a table of the rows.
func table(t *testing.T, kind string, dim int, rows model) sparsetable.Table {
	t.Helper()
	l := sparsetable.Layout{ValueDim: dim}
	tb, err := sparsetable.Open(t.Context(), sparsetable.Options{Kind: kind, Dir: t.TempDir(), Layout: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tb.Close() })
	src := &source{layout: l, rows: rows, keys: slices.Collect(maps.Keys(rows))}
	if n, err := tb.Import(t.Context(), src); err != nil || n != int64(len(rows)) {
		t.Fatal(n, err)
	}
	return tb
}

type source struct {
	layout sparsetable.Layout
	rows   model
	keys   []uint64
}

func (s *source) Next() (uint64, []float32, error) {
	if len(s.keys) == 0 {
		return 0, nil, io.EOF
	}
	key := s.keys[0]
	s.keys = s.keys[1:]
	row := make([]float32, s.layout.Words())
	copy(s.layout.Values(row), s.rows[key])
	s.layout.SetStats(row, sparsetable.RowStats{Show: 2, Count: 1})
	return key, row, nil
}

// counted counts how often a table is read.
type counted struct {
	sparsetable.Table
	scans int
}

func (c *counted) Scan(ctx context.Context, fn func(uint64, []float32) error) error {
	c.scans++
	return c.Table.Scan(ctx, fn)
}

// TestReadings: tables that do not fit the memory are read once. Where the disk of temporary files
// is small or fails, they are read more often, and the report is the same.
func TestReadings(t *testing.T) {
	from, to, fields := randomModels(testseed.Rand(t))
	a, b := &counted{Table: table(t, sparsetable.KindMemory, 3, from)}, &counted{Table: table(t, sparsetable.KindMemory, 3, to)}
	compare := func(t *testing.T) (scans int) {
		t.Helper()
		a.scans, b.scans = 0, 0
		logs, keys := 0, keysOf(fields)
		o := Options{MemoryBytes: 4 << 10, Top: 7, Fields: []string{"a", "b"}, Keys: func(ctx context.Context, visit func(int, uint64)) error {
			logs++
			return keys(ctx, visit)
		}}
		got, err := Compare(t.Context(), a, b, o)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, from, to, fields)
		if a.scans != b.scans || logs != a.scans {
			t.Errorf("the tables are read %d and %d times, the logs %d times", a.scans, b.scans, logs)
		}
		return a.scans
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if n := compare(t); n != 1 {
		t.Errorf("the tables are read %d times", n)
	}
	writes := 0
	diskfault.Inject(func(operation, path string) error {
		if filepath.Dir(path) == dir && operation == "write" {
			writes++
		}
		return nil
	})
	defer diskfault.Inject(nil)
	compare(t)
	// The disk is full at the first write, among the rows of either table, among the keys, and at the last one.
	for _, at := range []int{1, writes / 3, writes * 5 / 6, writes} {
		n := 0
		diskfault.Inject(func(operation, path string) error {
			if filepath.Dir(path) == dir {
				if n++; n >= at {
					return syscall.ENOSPC
				}
			}
			return nil
		})
		if scans := compare(t); scans < 10 {
			t.Errorf("write %d of %d fails: the tables are read %d times", at, writes, scans)
		}
	}
	diskfault.Inject(nil)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory of temporary files: %v, %v", left, err)
	}
	t.Run("small disk", func(t *testing.T) {
		t.Setenv("TMPDIR", testtools.Tmpfs(t, "size=64k"))
		if n := compare(t); n < 2 || n > 9 {
			t.Errorf("the tables are read %d times", n)
		}
	})
	t.Run("no disk", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
		if n := compare(t); n < 10 {
			t.Errorf("the tables are read %d times", n)
		}
	})
}

// TestOtherShape: rows of different numbers of values are only counted.
func TestOtherShape(t *testing.T) {
	a := table(t, sparsetable.KindMemory, 2, model{1: {1, 1}, 2: {1, 1}})
	b := table(t, sparsetable.KindMemory, 3, model{2: {1, 1, 1}, 3: {1, 1, 1}})
	r, err := Compare(t.Context(), a, b, Options{MemoryBytes: 1 << 20, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	if r.Comparable || len(r.Moved) > 0 || r.Total != (Group{Before: 2, After: 2, Added: 1, Dropped: 1}) {
		t.Errorf("%+v", r)
	}
}

// TestNotFinite: a value that is not a number makes the distance infinite, and the report
// is still JSON.
func TestNotFinite(t *testing.T) {
	nan := float32(math.NaN())
	a := table(t, sparsetable.KindMemory, 1, model{1: {nan}, 2: {0}, 3: {nan}})
	b := table(t, sparsetable.KindMemory, 1, model{1: {nan}, 2: {nan}, 3: {1}})
	r, err := Compare(t.Context(), a, b, Options{MemoryBytes: 1 << 20, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Moved != 2 || !math.IsInf(float64(r.Moved[0].Distance), 1) || !math.IsInf(float64(r.Total.MaxDistance), 1) {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestErrors: an error of the keys, and a cancelled context, end the comparison.
func TestErrors(t *testing.T) {
	a := table(t, sparsetable.KindMemory, 1, model{1: {1}})
	broken := errors.New("broken")
	o := Options{MemoryBytes: 1, Fields: []string{"a"}, Keys: func(context.Context, func(int, uint64)) error { return broken }}
	if _, err := Compare(t.Context(), a, a, o); !errors.Is(err, broken) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, a, a, Options{MemoryBytes: 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
