package prioritysaves

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/flow"
	"aibox/trainer/priority"
	"aibox/trainer/remote"
)

// passed is a pass over these rows of a table, which are trained, and released after seen has seen the pass.
func passed(t *testing.T, table sparsetable.Table, keys []uint64, value float32, seen func(flow.Pulled)) {
	t.Helper()
	rows, err := table.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	l := table.Layout()
	for i := range keys {
		row := rows.Row(i)
		st := l.Stats(row)
		st.Count++
		l.SetStats(row, st)
		l.Values(row)[0] = value
	}
	seen(flow.Pulled{Pass: &reader.Pass{Keys: keys}, Rows: rows})
}

// TestRowsWaitForASnapshot: the rows of a save are those that the table has after a pass, and they
// are uploaded once there is a local snapshot that is not older than they are.
func TestRowsWaitForASnapshot(t *testing.T) {
	layout := sparsetable.Layout{ValueDim: 1}
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{Layout: layout, Init: func(uint64, []float32) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	uploaded := make(map[uint64]float32)
	var steps []int64
	saves := New(Options{
		List: priority.New(priority.MFU, layout, 1<<20, 1), Fraction: 1, ChunkBytes: 2 * 2 * int64(priority.RowBytes(layout)), Layout: layout, Table: table,
		TempFile: func() (*os.File, error) { return os.Create(filepath.Join(t.TempDir(), "rows")) },
		Due:      func(_ time.Duration, snapshots int64) bool { return snapshots == 2 },
		Upload: func(_ context.Context, s *Save) (*remote.Published, error) {
			steps = append(steps, s.Step)
			r := priority.NewReader(io.NewSectionReader(s.File, 0, s.Rows*int64(priority.RowBytes(layout))), layout)
			for range s.Rows {
				key, row, err := r.Next()
				if err != nil {
					return nil, err
				}
				uploaded[key] = layout.Values(row)[0]
			}
			return new(remote.Published), nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	defer saves.Stop()
	keys := []uint64{3, 5, 7, 11, 13}
	train := func(value float32, step int64) {
		passed(t, table, keys, value, func(w flow.Pulled) {
			// The rows are already trained, so the list gets those that the table had before.
			saves.options.List.Begin(w.Pass.Keys, untrained{w.Rows, layout})
			saves.PassEnds(w, step)
		})
	}
	train(1, 10)
	saves.SnapshotHas(int64(len(keys)))
	saves.SnapshotFixed(false) // none is due
	if saves.save != nil {
		t.Fatal("a save has begun before it is due")
	}
	saves.SnapshotFixed(false)
	passed(t, table, keys, 2, func(flow.Pulled) { saves.Collect(20) })
	saves.SnapshotSaved(10)
	if saves.save == nil || saves.busy {
		t.Fatal("rows of step 20 are uploaded with a snapshot of step 10")
	}
	saves.SnapshotSaved(20)
	if !saves.Finish(t.Context()) {
		t.Fatal("the save was not uploaded")
	}
	if !slices.Equal(steps, []int64{20}) || len(uploaded) != len(keys) {
		t.Fatalf("saves of the steps %v, rows %v", steps, uploaded)
	}
	for _, key := range keys {
		if uploaded[key] != 2 {
			t.Errorf("row %d was saved with %v", key, uploaded[key])
		}
	}
	if s := saves.Summary(); s.Step != 20 || saves.MostBytes() == 0 {
		t.Errorf("%+v, %d bytes", s, saves.MostBytes())
	}
}

// untrained are rows with the count that they had before one mini-batch.
type untrained struct {
	*sparsetable.WorkingSet
	layout sparsetable.Layout
}

func (u untrained) Row(i int) []float32 {
	row := slices.Clone(u.WorkingSet.Row(i))
	st := u.layout.Stats(row)
	st.Count--
	u.layout.SetStats(row, st)
	return row
}
