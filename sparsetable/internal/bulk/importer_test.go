package bulk

import (
	"context"
	"errors"
	"io"
	"maps"
	"testing"

	"aibox/sparsetable/internal/distinct"
	"aibox/sparsetable/internal/spool"
)

// fake is a table that has no memory for a large import.
type fake struct {
	limit   int
	rows    map[uint64]float32
	calls   int
	failAt  int // the call of Overwrite that fails; 0: none
	lent    int64
	borrows bool
}

var errFake = errors.New("no room")

func (f *fake) Borrow(_ context.Context, bytes, least int64) (int64, error) {
	if !f.borrows || bytes != least {
		return 0, nil
	}
	f.lent += bytes
	return bytes, nil
}
func (f *fake) GiveBack(bytes int64) { f.lent -= bytes }
func (f *fake) PullLimit() int       { return f.limit }
func (f *fake) Overwrite(_ context.Context, keys []uint64, entries []byte) error {
	if f.calls++; f.calls == f.failAt {
		return errFake
	}
	i := 0
	return spool.EachEntry(entries, spool.EntryBytes(4), func(key uint64, row []float32) error {
		if key != keys[i] {
			return errors.New("the entries are not those of the keys")
		}
		i++
		f.rows[key] = row[0]
		return nil
	})
}
func (*fake) Grow(context.Context, *distinct.Keys) error { panic("a small import grows nothing") }
func (*fake) NewMerger(int64) Merger                     { panic("a small import merges nothing") }

// rows is a source of rows with the given keys, whose words count up from 1. After them it returns
// err.
type rows struct {
	keys  []uint64
	n     int
	err   error
	words int
}

func (s *rows) Next() (uint64, []float32, error) {
	if s.n == len(s.keys) {
		return 0, nil, s.err
	}
	s.n++
	row := make([]float32, s.words)
	row[0] = float32(s.n)
	return s.keys[s.n-1], row, nil
}

// options returns the options of an import of rows of one word into f. A row with the value 3
// counts as never trained.
func options(f *fake) Options {
	f.rows = map[uint64]float32{}
	return Options{
		Table: f, Plan: Plan{SmallRows: 20, ArenaBytes: 1 << 20, MinBlock: 4096}, Spools: &spool.Store{}, Words: 1, Entry: spool.EntryBytes(4),
		Trained: func(row []float32) bool { return row[0] != 3 },
	}
}

// A small import writes rows in batches and skips those that were never trained. Of rows with the
// same key the last one counts, although a batch has each key only once.
func TestSmallImport(t *testing.T) {
	want := map[uint64]float32{1: 7, 2: 2, 8: 5, 9: 6}
	for _, borrows := range []bool{false, true} {
		f := &fake{limit: 2, borrows: borrows}
		n, err := Import(t.Context(), options(f), &rows{keys: []uint64{1, 2, 3, 1, 8, 9, 1}, err: io.EOF, words: 1})
		if err != nil || n != 6 || !maps.Equal(f.rows, want) || f.lent != 0 {
			t.Errorf("memory can be borrowed: %v: %d rows, %v, %v; %d bytes are still borrowed", borrows, n, f.rows, err, f.lent)
		}
	}
}

// If a source fails, the rows before the error are imported. If the table fails, the error says how
// many rows were imported.
func TestImportFails(t *testing.T) {
	f := &fake{limit: 2}
	n, err := Import(t.Context(), options(f), &rows{keys: []uint64{1, 2, 4}, err: errFake, words: 1})
	if !errors.Is(err, errFake) || n != 2 || len(f.rows) != 2 {
		t.Errorf("the source fails: %d rows, %v, %v", n, f.rows, err)
	}
	f = &fake{limit: 2, failAt: 2}
	n, err = Import(t.Context(), options(f), &rows{keys: []uint64{1, 2, 4, 5, 6}, err: io.EOF, words: 1})
	if !errors.Is(err, errFake) || n != 2 || err.Error() != "after 2 imported rows: no room" {
		t.Errorf("the table fails: %d rows, %v", n, err)
	}
	f = &fake{limit: 2}
	if n, err = Import(t.Context(), options(f), &rows{keys: []uint64{1}, err: io.EOF, words: 2}); err == nil || n != 0 {
		t.Errorf("a row is too long: %d rows, %v", n, err)
	}
}

// The plan leaves half of the cache to other uses, and gives a merger a small part of the borrowed
// memory.
func TestPlans(t *testing.T) {
	if p := PlanFor(1<<20, 100); p.SmallRows != Batch || p.ArenaBytes != 512<<10 {
		t.Errorf("in a small cache: %+v", p)
	}
	if p := PlanFor(64<<30, 1<<30); p.SmallRows != 1<<26 || p.ArenaBytes != maxArena {
		t.Errorf("in a large cache: %+v", p)
	}
	for _, c := range []struct{ borrowed, want int64 }{{0, 4096}, {1 << 20, 64 << 10}, {1 << 30, maxMergerBytes}} {
		if got := mergerBytes(c.borrowed); got != c.want {
			t.Errorf("of %d bytes a merger takes %d, want %d", c.borrowed, got, c.want)
		}
	}
}
