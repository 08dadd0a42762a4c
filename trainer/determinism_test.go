package trainer

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"aibox/configs"
	"aibox/internal/kernel"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// variant is a change of the way in which a job runs that must not change the model.
type variant struct {
	name  string
	procs int
	level string
	set   []string
	// evicts: rows leave memory on the way, and the table is saved at random
	// passes.
	evicts bool
}

var variants = []variant{
	{name: "one reader thread, tiny chunks", set: []string{"pipeline.reader_threads=1", "pipeline.chunk_bytes=4KiB"}},
	{name: "many reader threads", set: []string{"pipeline.reader_threads=7", "pipeline.chunk_bytes=16KiB"}},
	{name: "deep queues", set: []string{"pipeline.read_queue=9", "pipeline.pull_queue=9"}},
	{name: "no queues", set: []string{"pipeline.read_queue=1", "pipeline.pull_queue=1"}},
	{name: "small passes", set: []string{"pipeline.batches_per_pass=1"}},
	{name: "one large pass", set: []string{"pipeline.batches_per_pass=1000"}},
	{name: "one processor", procs: 1},
	{name: "many processors", procs: 5, set: []string{"pipeline.compute_threads=5"}},
	{name: "one compute thread", set: []string{"pipeline.compute_threads=1"}},
	{name: "portable kernels", level: "portable"},
	{name: "on SSD, lookahead", evicts: true, set: []string{"sparse_table.kind=ssd", "pipeline.batches_per_pass=1"}},
	{name: "on SSD, lru_lfu", evicts: true, set: []string{"sparse_table.kind=ssd", "pipeline.batches_per_pass=1", "sparse_table.cache_policy=lru_lfu"}},
	{name: "on SSD, history", evicts: true, set: []string{"sparse_table.kind=ssd", "pipeline.batches_per_pass=1", "sparse_table.cache_policy=history"}},
	{name: "on SSD in two directories", evicts: true, set: []string{"sparse_table.kind=ssd", "pipeline.batches_per_pass=1", "sparse_table.dirs=[MODEL-a, MODEL-b]"}},
	{name: "other reports", set: []string{"output.log_every=1"}},
}

// extras are settings of the models of the zoo. Each option that draws random numbers or keeps
// state occurs in some of them.
var extras = map[string][]string{
	"aibox":     {"model.dropout=0.2", "optimizer.rows.kind=adam", "optimizer.rows.learning_rate=0.01"},
	"dlrm":      {"model.bottom_layers=[8, 4]", "optimizer.dense.kind=momentum", "optimizer.dense.learning_rate=0.01", "data.negative_sampling=0.6"},
	"wide_deep": {"model.batch_norm=true", "optimizer.dense.averaging=0.98", "optimizer.rows.kind=ftrl"},
	"deepfm":    {"model.dropout=0.3", "training.epochs=2", "sparse_table.admission.min_occurrences=3", "optimizer.rows.weight_decay=0.5", "sparse_table.value_format=bfloat16"},
	"dcn":       {"optimizer.dense={kind: adagrad, averaging: 0.9}", "optimizer.rows={kind: rowwise_adagrad, weight_decay: 0.9}"},
	"dcn_v2":    {"model.cross_rank=3", "optimizer.dense.kind=adamw", "optimizer.rows.weight_decay=0.1", "optimizer.schedule={warmup_steps: 10, decay: cosine, decay_steps: 30}"},
	"fm":        {"optimizer.rows.kind=sgd", "training.max_examples=1111"},
	"lr":        {"sparse_table.expiry.min_show=2"},
}

// TestSameModelHoweverItIsRun checks what the product promises: the same job, seed and data give
// the same model, bit for bit.
func TestSameModelHoweverItIsRun(t *testing.T) {
	for _, kind := range testjobs.Kinds() {
		t.Run(kind, func(t *testing.T) {
			base := slices.Clip(extras[kind])
			want := train(t, job(t, kind, base...)).Digest
			again := train(t, job(t, kind, base...)).Digest
			if again != want {
				t.Fatalf("the same run twice: %s and %s", want, again)
			}
			if other := train(t, job(t, kind, append(base, "seed=8")...)).Digest; other == want {
				t.Error("another seed, the same model: the digest sees nothing")
			}
			for i, v := range variants {
				if testing.Short() && i%3 != 0 {
					continue
				}
				t.Run(v.name, func(t *testing.T) { v.check(t, kind, base, want) })
			}
		})
	}
}

// check trains a model with base and the variant's changes. want is the digest that it must have.
func (v *variant) check(t *testing.T, kind string, base []string, want string) {
	if v.procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(v.procs))
	}
	if v.level != "" {
		before := kernel.Level()
		if err := kernel.SetLevel(v.level); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := kernel.SetLevel(before); err != nil {
				t.Fatal(err)
			}
		}()
	}
	set := append(slices.Clip(base), v.set...)
	if v.evicts {
		v.checkSmallest(t, kind, set, want)
		return
	}
	if got := train(t, job(t, kind, set...)).Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// checkSmallest trains with the smallest budget that works, which it finds with the help of the
// errors under smaller ones, and saves the table at random passes.
func (v *variant) checkSmallest(t *testing.T, kind string, set []string, want string) {
	kib := int64(1024)
	var got *report.Summary
	var s *saver
	var j *configs.Job
	for tries := 0; got == nil; tries++ {
		opts := quiet
		s = newSaver(t)
		opts.afterPass = s.afterPass
		var err error
		j = job(t, kind, append(slices.Clip(set), fmt.Sprintf("sparse_table.memory_bytes=%dKiB", kib))...)
		got, err = Train(t.Context(), j, opts)
		named := regexp.MustCompile(`needs a budget of (\d+) bytes`).FindStringSubmatch(fmt.Sprint(err))
		if errors.Is(err, sparsetable.ErrBudget) && len(named) == 2 && tries < 10 {
			bytes, err := strconv.ParseInt(named[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			kib = (bytes + 1023) >> 10
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if digest := testjobs.Digest(t, j); digest != want {
		t.Errorf("digest %s, want %s", digest, want)
	}
	if got.Table.Evictions == 0 {
		t.Errorf("no row left memory: %+v", got.Table)
	}
	if s.taken == 0 {
		t.Error("no snapshot was taken on the way")
	}
}

// TestLimitsDoNotDependOnWorkAhead stops training in the middle of a pass while stage ST has
// already pulled, and thus created, rows of later passes.
func TestLimitsDoNotDependOnWorkAhead(t *testing.T) {
	var want string
	for i, set := range [][]string{
		{"pipeline.batches_per_pass=1", "pipeline.read_queue=1", "pipeline.pull_queue=1"},
		{"pipeline.batches_per_pass=3", "pipeline.read_queue=8", "pipeline.pull_queue=8"},
	} {
		s := train(t, job(t, "fm", append(set, "training.max_examples=777", "training.epochs=3")...))
		if s.Examples != 777 {
			t.Errorf("%d examples trained, want 777", s.Examples)
		}
		if i == 0 {
			want = s.Digest
		} else if s.Digest != want {
			t.Errorf("%v: digest %s, want %s", set, s.Digest, want)
		}
	}
}

func TestDigestIsOfTheFiles(t *testing.T) {
	j := job(t, "deepfm")
	s := train(t, j)
	in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, inference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Digest != s.Digest {
		t.Errorf("inspect computes %s, training recorded %s", in.Digest, s.Digest)
	}
	if in.Rows.Count != s.Table.Rows {
		t.Errorf("inspect counts %d rows, training %d", in.Rows.Count, s.Table.Rows)
	}
	if fmt.Sprint(in.Fields) != "[user item tags region]" {
		t.Errorf("fields %v", in.Fields)
	}
}
