package trainer

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"testing"

	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/internal/testjobs"
)

// TestBench checks that the steps of a Bench are those of the job.
func TestBench(t *testing.T) {
	j := job(t, "deepfm", "data.columns[2].transform=[log1p]")
	b, err := NewBench(t.Context(), j, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Table.Close()
	rd, err := reader.Open(t.Context(), b.Reader)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	loss := 0.0
	for {
		pass, err := rd.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, err := b.Table.Pull(t.Context(), pass.Keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Engine.Begin(engine.Pass{Keys: pass.Keys, Rows: rows}); err != nil {
			t.Fatal(err)
		}
		for i := range pass.Batches {
			err := b.Engine.Train(engine.Batch{Batch: &pass.Batches[i]}, func(r *engine.Result) error {
				loss += r.Loss * float64(r.Batch.N)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Engine.End(); err != nil {
			t.Fatal(err)
		}
		rows.Release()
	}
	want := float64(train(t, j).Epochs[0].Online.LogLoss)
	if got := loss / testjobs.TrainRows; math.Abs(got-want) > 1e-6 {
		t.Errorf("mean loss of the steps %.8f, of the job %.8f", got, want)
	}
}
