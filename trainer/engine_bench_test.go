package trainer

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
)

// BenchmarkEngine takes steps of training over rows in memory, in every format:
// statistics and gathering, network, update and rounding; dlrm has the network
// of the peers' measurements, also in bf16, lr hardly any. 26 fields, Zipf
// s = 1.125 over 20 million keys a field.
func BenchmarkEngine(b *testing.B) {
	for _, kind := range []string{"lr", "fm", "dlrm"} {
		for f := range sparsetable.ValueFormats() {
			format := sparsetable.ValueFormat(f)
			b.Run(fmt.Sprintf("%s/%v", kind, format), func(b *testing.B) { benchmarkEngine(b, kind, format, engine.Float32) })
		}
	}
	b.Run("dlrm/float32 in bf16", func(b *testing.B) { benchmarkEngine(b, "dlrm", sparsetable.Float32, engine.BF16) })
}

func benchmarkEngine(b *testing.B, kind string, format sparsetable.ValueFormat, precision engine.Precision) {
	const fields, dense, examples, batches = 26, 13, 2048, 16
	// NewBench looks at the first examples. Dense columns get no indicators of missing numbers.
	log := filepath.Join(b.TempDir(), "log.tsv")
	if err := os.WriteFile(log, []byte("1"+strings.Repeat("\t1", dense+fields)+"\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	var columns []string
	for i := range dense {
		columns = append(columns, fmt.Sprintf("{name: I%d, missing: 0}", i+1))
	}
	text := "data: {train: [" + log + "], format: criteo, columns: [" + strings.Join(columns, ", ") + "]}\noutput: {model_dir: none}\nmodel: {kind: " + kind
	switch kind {
	case "dlrm":
		text += ", embedding_dim: 16, bottom_layers: [512, 256, 64, 16], hidden_layers: [512, 256]"
	case "fm":
		text += ", embedding_dim: 16"
	}
	text += "}\noptimizer: {dense: {kind: sgd, learning_rate: 0.01}, rows: {kind: rowwise_adagrad, learning_rate: 0.01}}\n"
	job, err := configs.Parse("bench", []byte(text), configs.LoadOptions{Set: []string{
		fmt.Sprintf("sparse_table.value_format=%v", format), fmt.Sprintf("engine.precision=%v", precision)}})
	if err != nil {
		b.Fatal(err)
	}
	bench, err := NewBench(b.Context(), job, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer bench.Table.Close()
	pass := benchmarkPass(fields, dense, examples, batches)
	ws, err := bench.Table.Pull(b.Context(), pass.Keys, sparsetable.PullCreate)
	if err != nil {
		b.Fatal(err)
	}
	defer ws.Release()
	if err := bench.Engine.Begin(engine.Pass{Keys: pass.Keys, Rows: ws}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := bench.Engine.Train(engine.Batch{Batch: &pass.Batches[i%batches]}, func(*engine.Result) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*examples/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(bench.Table.Layout().Bytes()), "B/row")
}

// benchmarkPass returns a pass of mini-batches with one value per field.
func benchmarkPass(fields, dense, examples, batches int) *reader.Pass {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.125, 1, 20_000_000)
	pass := new(reader.Pass)
	at := make(map[uint64]int32)
	for range batches {
		batch := reader.Batch{N: examples, Offsets: []int32{0}}
		unique := make(map[int32]int32)
		for range examples {
			batch.Labels = append(batch.Labels, float32(rng.IntN(2)))
			for range dense {
				batch.Dense = append(batch.Dense, float32(rng.NormFloat64()))
			}
			for f := range fields {
				key := zipf.Uint64()*uint64(fields) + uint64(f)
				i, ok := at[key]
				if !ok {
					i = int32(len(pass.Keys))
					at[key] = i
					pass.Keys = append(pass.Keys, key)
				}
				j, ok := unique[i]
				if !ok {
					j = int32(len(batch.Rows))
					unique[i] = j
					batch.Rows = append(batch.Rows, i)
				}
				batch.Index = append(batch.Index, j)
				batch.Offsets = append(batch.Offsets, int32(len(batch.Index)))
			}
		}
		batch.Invert(len(batch.Rows))
		pass.Batches = append(pass.Batches, batch)
	}
	return pass
}
