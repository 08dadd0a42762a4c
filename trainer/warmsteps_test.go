package trainer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/warmstart"
)

const adamRate = 0.01

// adam is what the tests of this file have in common: Adam at a real learning
// rate, so that the first update of a value is the rate, whatever its gradient.
var adam = []string{
	"optimizer.dense.kind=adam", "optimizer.dense.learning_rate=0.01", "optimizer.rows.kind=adam", "optimizer.rows.learning_rate=0.01",
	"data.columns[2].transform=[log1p]", "data.shuffle_buffer=0", "sparse_table.show_decay=1", "training.batch_size=60", // 1,500 rows are 25 mini-batches
}

// Overrides for a night that has less than the one after it.
var (
	towers = []string{
		"model.towers=[{name: a, dense: [a], layers: [8, 4]}]",
		"model.towers=[{name: a, dense: [a], layers: [8, 4]}, {name: b, dense: [b], layers: [6, 4]}]",
	}
	withoutItem = []string{"data.columns[5].role=ignore", "data.columns[3]={name: D3, role: ignore}"}
)

// checkFirstUpdates checks how far the values of fresh parameters have come from
// their first values in one step.
func checkFirstUpdates(t *testing.T, what string, moved []float64) {
	t.Helper()
	some := 0
	for _, d := range moved {
		if d > 1.01*adamRate {
			t.Errorf("%s: a first update is %g, the learning rate %g", what, d, adamRate)
			return
		}
		if d > 0.99*adamRate {
			some++
		}
	}
	if some < 50 { // rows of fields that were there go by their own steps
		t.Errorf("%s: %d of %d first updates are of the size of the learning rate; the largest is %g", what, some, len(moved), slices.Max(moved))
	}
}

// TestFirstUpdatesAfterAWarmStart: dense values and rows that a warm start adds,
// or whose optimizer it changes, are moved by the learning rate in their first
// step, as in a new model, however many steps the earlier one has taken.
func TestFirstUpdatesAfterAWarmStart(t *testing.T) {
	for name, c := range map[string]struct{ before, after []string }{
		"tower and field": {append(slices.Clone(withoutItem), towers[0]), []string{towers[1]}},
		"optimizer": {
			[]string{towers[1], "optimizer.dense.kind=adagrad", "optimizer.rows.kind=adagrad"}, []string{towers[1]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := firstNight(t, "aibox", append(slices.Clone(adam), c.before...)...)
			old := load(t, dir)
			j := job(t, "aibox", append(append(slices.Clone(adam), c.after...), "data.train=[LOG/train-1.tsv.gz]", "data.limit=60")...)
			j.Training.WarmStart = dir
			train(t, j)
			now := load(t, j.Output.ModelDir)
			if now.Saved.Step != old.Saved.Step+1 {
				t.Fatalf("%d steps after %d", now.Saved.Step, old.Saved.Step)
			}

			initial, err := model.New(now.Network.Spec())
			if err != nil {
				t.Fatal(err)
			}
			was := make(map[string]int)
			for i, p := range old.Network.Params() {
				was[p.Name] = i
			}
			var moved []float64
			for i, p := range now.Network.Params() {
				start := slices.Clone(initial.Params()[i].Data)
				fresh := slices.Repeat([]bool{true}, len(start))
				if k, ok := was[p.Name]; ok {
					o := old.Network.Params()[k]
					m, err := warmstart.MatchAxes(p.Name, o.Shape, old.Network.Axes(o.Name), p.Shape, now.Network.Axes(p.Name))
					if err != nil {
						t.Fatal(err)
					}
					warmstart.Copy(m, start, o.Data)
					if name != "optimizer" {
						warmstart.Copy(m, fresh, make([]bool, len(o.Data)))
					}
				}
				for v := range start {
					// Gradients of 0 move nothing: those of units that are off.
					if d := math.Abs(float64(p.Data[v] - start[v])); fresh[v] && d > 0 {
						moved = append(moved, d)
					}
				}
			}
			checkFirstUpdates(t, "dense values", moved)

			moved = nil
			before := tableRows(t, old.Table)
			layout := now.Table.Layout()
			p, err := jobparts.Make(j)
			if err != nil {
				t.Fatal(err)
			}
			init := jobparts.NewRowInit(layout, p.Rows, j.Seed, *j.SparseTable.InitStddev)
			for key, row := range tableRows(t, now.Table) {
				if layout.Stats(row).LastSeen != now.Saved.Day || name == "tower and field" && before[key] != nil {
					continue
				}
				start := make([]float32, layout.Words())
				if init(key, start); before[key] != nil {
					copy(start, old.Table.Layout().Values(before[key]))
				}
				for v, x := range layout.Values(row) {
					if d := math.Abs(float64(x - start[v])); d > 0 {
						moved = append(moved, d)
					}
				}
			}
			checkFirstUpdates(t, "rows", moved)
		})
	}
}

// TestStepsAreSaved: a night that begins with an added tower and field, or with
// another optimizer, can be cut in two: the second half goes on with the numbers
// of steps that the first one had.
func TestStepsAreSaved(t *testing.T) {
	for name, c := range map[string]struct{ before, after []string }{
		"tower and field": {append(slices.Clone(withoutItem), towers[0]), []string{towers[1]}},
		"optimizer":       {[]string{towers[1], "optimizer.dense.kind=sgd", "optimizer.rows.kind=sgd"}, []string{towers[1]}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := firstNight(t, "aibox", append(slices.Clone(adam), c.before...)...)
			set := append(slices.Clone(adam), c.after...)
			whole := job(t, "aibox", set...)
			whole.Training.WarmStart = dir
			train(t, whole)
			first := job(t, "aibox", append(slices.Clone(set), "data.train=[LOG/train-0.tsv]")...)
			first.Training.WarmStart = dir
			train(t, first)
			second := job(t, "aibox", append(slices.Clone(set), "data.train=[LOG/train-1.tsv.gz]")...)
			second.Training.WarmStart = first.Output.ModelDir
			train(t, second)
			a, b := load(t, whole.Output.ModelDir), load(t, second.Output.ModelDir)
			if len(a.Saved.Dense) != len(b.Saved.Dense) {
				t.Errorf("%d and %d tensors", len(a.Saved.Dense), len(b.Saved.Dense))
			}
			steps := 0
			for i, x := range a.Saved.Dense {
				if y := b.Saved.Dense[i]; x.Name != y.Name || !slices.Equal(x.Data, y.Data) {
					t.Errorf("tensor %s differs between one night and two", x.Name)
				}
				if strings.HasSuffix(x.Name, "/step") {
					steps++
				}
			}
			if steps == 0 {
				t.Error("no numbers of steps are saved")
			}
			rows, words := tableRows(t, b.Table), a.Table.Layout().Words()
			for key, row := range tableRows(t, a.Table) {
				if !sameWords(row[:words-2], rows[key][:words-2]) { // last-seen differs by the night
					t.Fatalf("row %x differs between one night and two", key)
				}
			}
		})
	}
}
