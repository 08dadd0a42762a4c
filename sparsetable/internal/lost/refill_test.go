package lost

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"testing"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// fakeTable is a table with rows of one value.
type fakeTable struct {
	rows   map[uint64]float32
	pulled []int // how many keys each Pull was for
	err    error // of Import
}

func (f *fakeTable) Pull(_ context.Context, keys []uint64, _ contract.PullMode) (*contract.WorkingSet, error) {
	f.pulled = append(f.pulled, len(keys))
	refs := make([]uint32, len(keys))
	for i, k := range keys {
		if _, has := f.rows[k]; has {
			refs[i] = 1
		}
	}
	ws := contract.NewSet(refs, contract.Rows{}, nil, func() {})
	return &ws, nil
}

func (f *fakeTable) Import(_ context.Context, src contract.RowSource) (rows int64, err error) {
	for f.err == nil {
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		f.rows[key] = row[0]
		rows++
	}
	return rows, f.err
}

// TestRefill checks that rows are looked up in small batches, and that those are inserted that may
// be lost, were trained, and do not exist in the table.
func TestRefill(t *testing.T) {
	l := layout.Layout{ValueDim: 1}
	row := func(value float32, count uint32) []float32 {
		return []float32{value, 0, 0, 0, math.Float32frombits(count)}
	}
	all := &Files{slots: 1, gone: []uint64{1}, bare: []uint64{0}}
	tab := &fakeTable{rows: map[uint64]float32{3: 30}}
	r := NewRefill(t.Context(), tab, all, 0, l, 2)
	for key := range uint64(6) {
		if err := r.Add(key, row(float32(key), min(uint32(key), 1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	want := map[uint64]float32{1: 1, 2: 2, 3: 30, 4: 4, 5: 5} // 0 was never trained
	if !maps.Equal(tab.rows, want) || r.Inserted() != 4 || len(tab.pulled) != 3 {
		t.Errorf("%v, %d inserted, looked up %v at a time", tab.rows, r.Inserted(), tab.pulled)
	}
	none := &Files{slots: 1, gone: []uint64{0}, bare: []uint64{0}}
	r = NewRefill(t.Context(), tab, none, 0, l, 2)
	if err := errors.Join(r.Add(9, row(9, 1)), r.Flush()); err != nil || len(tab.rows) != len(want) {
		t.Errorf("where no slot is lost: %v, %v", tab.rows, err)
	}
	if r = NewRefill(t.Context(), tab, all, 0, l, 2); r.Add(9, make([]float32, 4)) == nil {
		t.Error("a row that is too short was taken")
	}
	tab.err = io.ErrNoProgress
	if err := errors.Join(r.Add(9, row(9, 1)), r.Flush()); !errors.Is(err, tab.err) || r.Inserted() != 0 {
		t.Errorf("the table fails: %v, %d inserted", err, r.Inserted())
	}
	if n := RefillRows(l, 80); n != 10 {
		t.Errorf("%d rows at a time of a cache of 80", n)
	}
}
