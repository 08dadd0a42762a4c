package trainer

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"aibox/pipeline"
	"aibox/trainer/flow"
)

// TestBound checks that the summary names the stage that limited the speed of the job, and a
// setting that would help.
func TestBound(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const reading, table, training = 0, 1, 2
	for _, c := range []struct {
		stage int
		set   []string
		busy  float64
		files int
		want  []string
		not   string
	}{
		{reading, []string{"pipeline.reader_threads=2"}, 0.5, 9, []string{"reading", "50 %", "pipeline.reader_threads, which is 2"}, ""},
		{reading, []string{"pipeline.reader_threads=2"}, 0.9, 9, []string{"reading", "use more cores"}, "reader_threads"},
		{reading, []string{"data.train=[a.tsv.gz]"}, 0.3, 1, []string{"reading", "data.train has 1"}, "reader_threads"},
		{reading, []string{"data.train=[a.tsv.gz]"}, 0.9, 1, []string{"reading", "4 cores were busy for 90 %", "role: ignore"}, "decompress"},
		{reading, []string{"data.train=[a.tsv]"}, 0.3, 1, []string{"reading", "30 %", "increase pipeline.reader_threads", "more than 4 parts"}, ""},
		{table, nil, 1, 1, []string{"the table", "pipeline.batches_per_pass"}, ""},
		{table, []string{"sparse_table.kind=ssd", "sparse_table.memory_bytes=64MiB"}, 1, 1, []string{"the table", "sparse_table.memory_bytes, which is 64", "sparse_table.dirs"}, ""},
		{training, []string{"pipeline.compute_threads=1"}, 0.3, 1, []string{"training", "pipeline.compute_threads, which is 1"}, ""},
		{training, []string{"pipeline.compute_threads=1"}, 0.9, 1, []string{"training", "use more cores"}, "compute_threads"},
		{training, nil, 1, 1, []string{"training", "100 %", "training.batch_size, which is 64", "model.embedding_dim, which is 4"}, "layers"},
		{training, nil, 0.3, 1, []string{"training", "30 %", "leave the cores to this job"}, "more cores"},
		{training, []string{"engine.kind=cuda", "engine.devices=[0]"}, 0.3, 1, []string{"training", "engine.embeddings to device"}, ""},
		{training, []string{"engine.kind=cuda", "engine.devices=[0]", "engine.embeddings=device"}, 0.3, 1, []string{"training"}, "engine.embeddings"},
		{training, []string{"training.batch_size=512"}, 1, 1, []string{"training", "use more cores"}, "batch_size"},
	} {
		stages := []pipeline.StageStats{{Name: flow.StageRead}, {Name: flow.StageTable}, {Name: flow.StageLearn}}
		stages[c.stage].Busy = time.Second
		j := job(t, "fm", c.set...)
		got := bound(j, stages, c.busy, c.files)
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("stage %d %v: %q lacks %q", c.stage, c.set, got, part)
			}
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("stage %d %v: %q has %q", c.stage, c.set, got, c.not)
		}
		if c.stage == training && c.busy == 1 {
			stages[reading].Busy = 900 * time.Millisecond
			if got := bound(j, stages, c.busy, c.files); !strings.HasPrefix(got, "training and, hardly less, reading") {
				t.Errorf("reading takes nearly as long as training: %q", got)
			}
		}
	}
	if got := bound(job(t, "fm"), make([]pipeline.StageStats, 3), 0, 1); got != "" {
		t.Errorf("no stage has worked, but %q", got)
	}
}

// TestSummarySaysWhatBounds checks the same for the summary of a run, which also has the processor
// time.
func TestSummarySaysWhatBounds(t *testing.T) {
	j := job(t, "fm")
	s := train(t, j)
	last := &s.Epochs[len(s.Epochs)-1]
	if s.Bound == "" || s.Bound != bound(j, last.Measured, last.Busy(), 2) {
		t.Errorf("limited by %s: %q", s.Limiting, s.Bound)
	}
	// With fewer threads of Go than cores, system calls and the collector may use the others.
	most := max(1, float64(runtime.NumCPU())/float64(runtime.GOMAXPROCS(0)))
	if share := last.Busy(); share <= 0 || share > 1.1*most {
		t.Errorf("%g of the cores' time, want %g at most", share, most)
	}
}
