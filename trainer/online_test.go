package trainer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// TestLinesLeaveTheEpochsMetrics checks that the metrics of an epoch do not depend on how often
// lines of metrics are written, and that the AUC of a line comes with its possible error.
func TestLinesLeaveTheEpochsMetrics(t *testing.T) {
	seldom := train(t, job(t, "lr", "output.log_every=1000000"))
	j := job(t, "lr", "output.log_every=1")
	status := new(report.Status)
	opts := quiet
	opts.Status = status
	often, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := often.Epochs[0].Online, seldom.Epochs[0].Online; a != b && !(math.IsNaN(float64(a.GroupAUC)) && a.AUC == b.AUC && a.LogLoss == b.LogLoss && a.AUCError == b.AUCError) {
		t.Errorf("%+v with a line for every mini-batch, %+v with one", a, b)
	}
	f, err := os.Open(filepath.Join(j.Output.ModelDir, report.MetricsName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for scan := bufio.NewScanner(f); scan.Scan(); lines++ { // an untrained model ties nearly all examples
		var line report.Line
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Kind == "train" && line.AUC.Defined() && !(line.AUCError >= 0 && line.AUCError <= 0.5) {
			t.Errorf("line %d: AUC %v, off by %v", lines, line.AUC, line.AUCError)
		}
		if want := min(64*line.Step, testjobs.TrainRows); line.Examples != want {
			t.Errorf("line %d, of kind %s: after step %d %d examples are trained, want %d", lines, line.Kind, line.Step, line.Examples, want)
		}
	}
	if lines < testjobs.TrainRows/64 {
		t.Errorf("%d lines", lines)
	}
}

// TestScoredMeanwhile checks that mini-batches are scored from copies of their results, with a line
// after each if that is wanted, and that an error is returned at the latest when all have to be
// scored.
func TestScoredMeanwhile(t *testing.T) {
	j, err := testjobs.Parse("lr", []string{"data.train=[x]", "output.model_dir=" + t.TempDir(), "output.log_every=2"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := modeldir.Create(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	reports, err := report.OpenWriter(j, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reports.Close() }()
	r := &run{task: task{job: j, opts: Options{Status: new(report.Status)}}, results: results{reports: reports}, training: training{state: runstate.State{Online: runstate.NewOnline()}}}
	rng, want := rand.New(rand.NewPCG(1, 2)), runstate.NewOnline()
	batch := &reader.Batch{N: 512, Labels: make([]float32, 512)}
	res := &engine.Result{Batch: batch, Logits: make([]float32, 512)}
	for step := range 7 {
		batch.Weights = nil
		if step%3 == 1 {
			batch.Weights = make([]float32, batch.N)
		}
		for i := range batch.N {
			res.Logits[i], batch.Labels[i] = float32(rng.NormFloat64()), float32(rng.IntN(2))
			if batch.Weights != nil {
				batch.Weights[i] = rng.Float32()
			}
		}
		if err := want.Add(res.Logits, batch.Labels, batch.Weights); err != nil {
			t.Fatal(err)
		}
		if err := r.scored(res); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.counted(); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.state.Online.All.Report()), fmt.Sprint(want.All.Report()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if lines := r.state.Online.Lines; lines != 1 || r.state.Recent.Examples != 2*int64(batch.N) {
		t.Errorf("%d mini-batches since the last line, which is of %d examples", lines, r.state.Recent.Examples)
	}
	res.Logits[0] = float32(math.NaN())
	if err := errors.Join(r.scored(res), r.counted()); !errors.Is(err, metrics.ErrNotFinite) {
		t.Errorf("the error of a logit that is no number: %v", err)
	}
}

// BenchmarkOnline counts mini-batches of 2,048 examples, with a line of metrics for each of
// them and with hardly any.
func BenchmarkOnline(b *testing.B) {
	const n = 2048
	rng := rand.New(rand.NewPCG(1, 2))
	batch := &reader.Batch{N: n, Labels: make([]float32, n)}
	res := &engine.Result{Batch: batch, Logits: make([]float32, n)}
	for i := range res.Logits {
		res.Logits[i] = float32(rng.NormFloat64()) * 3
		batch.Labels[i] = float32(rng.IntN(2))
	}
	for _, every := range []int64{1, 1000} {
		b.Run(fmt.Sprintf("every=%d", every), func(b *testing.B) {
			j, err := testjobs.Parse("lr", []string{"data.train=[x]", "output.model_dir=" + b.TempDir(), fmt.Sprint("output.log_every=", every)})
			if err != nil {
				b.Fatal(err)
			}
			w, err := modeldir.Create(j.Output.ModelDir)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			reports, err := report.OpenWriter(j, w, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = reports.Close() }()
			r := &run{task: task{job: j, opts: Options{Status: new(report.Status)}}, results: results{reports: reports}, training: training{state: runstate.State{Online: runstate.NewOnline()}}}
			for b.Loop() {
				if err := r.scored(res); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/example")
		})
	}
}
