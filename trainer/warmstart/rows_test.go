package warmstart

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/optim"
)

func testRows(kind string) optim.RowConfig {
	return optim.RowConfig{Kind: kind, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, InitialAccumulator: 0.5, FTRLBeta: 1}
}

// newRow makes new rows.
func newRow(l sparsetable.Layout, rows *optim.Rows) func(key uint64, row []float32) {
	return func(key uint64, row []float32) {
		for i := range l.Values(row) {
			l.Values(row)[i] = 0.01 * float32(int(key)%7+i)
		}
		rows.Init(l.Values(row), l.State(row))
	}
}

// TestConvertLinearState: the state of linear weights with an optimizer of their own stays with
// them, beside that of embeddings whose dimension changes.
func TestConvertLinearState(t *testing.T) {
	oldRows, err := optim.NewLinearRows(testRows("ftrl"), testRows("adagrad"), 3)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := optim.NewLinearRows(testRows("ftrl"), testRows("adagrad"), 4)
	if err != nil {
		t.Fatal(err)
	}
	from := sparsetable.Layout{ValueDim: 3, StateDim: oldRows.StateDim()}
	to := sparsetable.Layout{ValueDim: 4, StateDim: rows.StateDim()}
	take, err := MatchAxes("row", []int{3}, [][]string{{"linear", "0", "1"}}, []int{4}, [][]string{{"linear", "0", "1", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	c := NewConverter(Conversion{
		From: from, To: to, Take: take, KeepState: true, Init: newRow(to, rows), Refresh: rows.Init, Parts: rows.Parts(), OldParts: oldRows.Parts(),
	})
	row := make([]float32, from.Words())
	copy(from.Values(row), []float32{1, 2, 3})
	copy(from.State(row), []float32{4, 5, 6, 7}) // z and n of the linear weight, then the embedding's sums
	got := c.Convert(42, row)
	if want := []float32{4, 5, 6, 7, 0.5}; !slices.Equal(to.State(got), want) {
		t.Errorf("state %v, want %v", to.State(got), want)
	}
}

// TestConvertState: the state of an optimizer stays with the values to which it belongs,
// and values that are new get that of a new row.
func TestConvertState(t *testing.T) {
	names := func(dim int) [][]string {
		n := []string{"linear"}
		for i := range dim {
			n = append(n, fmt.Sprint(i))
		}
		return [][]string{n}
	}
	for kind, words := range map[string]int{"sgd": 0, "rowwise_adagrad": -1, "adagrad": 1, "adam": 2, "ftrl": 2} {
		for _, dims := range [][2]int{{2, 4}, {4, 2}, {3, 3}, {0, 2}, {2, 0}} {
			oldRows, err := optim.NewRows(testRows(kind), 1+dims[0])
			if err != nil {
				t.Fatal(err)
			}
			rows, err := optim.NewRows(testRows(kind), 1+dims[1])
			if err != nil {
				t.Fatal(err)
			}
			stateDim := func(values int) int {
				if words < 0 {
					return 1
				}
				return words * values
			}
			from := sparsetable.Layout{ValueDim: 1 + dims[0], StateDim: stateDim(1 + dims[0])}
			to := sparsetable.Layout{ValueDim: 1 + dims[1], StateDim: rows.StateDim()}
			take, err := MatchAxes("row", []int{from.ValueDim}, names(dims[0]), []int{to.ValueDim}, names(dims[1]))
			if err != nil {
				t.Fatal(err)
			}
			c := NewConverter(Conversion{
				From: from, To: to, Take: take, KeepState: true, Init: newRow(to, rows), Refresh: rows.Init, Parts: rows.Parts(), OldParts: oldRows.Parts(),
			})
			row := make([]float32, from.Words())
			for i := range row[:from.ValueDim+from.StateDim] {
				row[i] = float32(i + 1)
			}
			from.SetStats(row, sparsetable.RowStats{Show: 7, Count: 9})
			got := c.Convert(42, row)
			if st := to.Stats(got); st.Show != 7 || st.Count != 9 {
				t.Errorf("%s %v: statistics %+v", kind, dims, st)
			}
			fresh := make([]float32, to.StateDim)
			rows.Init(to.Values(got), fresh)
			for v := range to.ValueDim {
				if v < from.ValueDim && to.Values(got)[v] != float32(v+1) {
					t.Errorf("%s %v: values %v", kind, dims, to.Values(got))
				}
				for w := range words {
					want := fresh[w*to.ValueDim+v]
					if v < from.ValueDim {
						want = float32(from.ValueDim + w*from.ValueDim + v + 1)
					}
					if have := to.State(got)[w*to.ValueDim+v]; have != want {
						t.Errorf("%s %v: word %d of value %d is %g, want %g", kind, dims, w, v, have, want)
					}
				}
			}
			if words < 0 && to.State(got)[0] != float32(from.ValueDim+1) {
				t.Errorf("%s %v: state %v", kind, dims, to.State(got))
			}
		}
	}
}

// TestCopyProgress: the log says how long a copy goes on, as soon as that can be judged,
// and then now and then.
func TestCopyProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var log bytes.Buffer
	p := newCopyProgress(slog.New(slog.NewTextHandler(&log, nil)), 50*rowsPerProgress, func() time.Time { return now })
	for i := range 45 * rowsPerProgress {
		if i%rowsPerProgress == 0 {
			now = now.Add(time.Second)
		}
		p.count()
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], fmt.Sprintf("rows=%d of=%d seconds_left=47", 3*rowsPerProgress, 50*rowsPerProgress)) || !strings.Contains(lines[1], "seconds_left=17") {
		t.Errorf("%s", &log)
	}
	if p.seconds() != 45 {
		t.Errorf("%g seconds", p.seconds())
	}
}
