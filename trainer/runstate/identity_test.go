package runstate

import (
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/chain"
	"aibox/trainer/dataset"
	"aibox/trainer/internal/testjobs"
)

// jobIn is a job with its models in a directory.
func jobIn(t *testing.T, dir string, set ...string) *configs.Job {
	t.Helper()
	j, err := testjobs.Parse("lr", append([]string{"data.train=[log.tsv]", "output.model_dir=" + dir}, set...))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestDifferences checks that a run is resumed unless something differs on which the model depends,
// which is then named, and that the key of its snapshots depends on the job and its night.
func TestDifferences(t *testing.T) {
	dir := t.TempDir()
	job := func(set ...string) *configs.Job { return jobIn(t, dir, set...) }
	before := job("sparse_table.kind=ssd", "sparse_table.memory_bytes=64MiB")
	id, err := IdentityOf(before, nil, &dataset.Data{})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := IdentityOf(before, nil, &dataset.Data{}); err != nil || same.Key() != id.Key() {
		t.Errorf("the same job has another key, %v", err)
	}
	for set, want := range map[string]string{
		"output.remote=/models":             "",
		"snapshots.every=1 pass":            "",
		"recovery.mode=full":                "",
		"pipeline.read_queue=3":             "",
		"output.keep_generations=5":         "",
		"output.remote_keep_generations=5":  "",
		"data.hdfs.timeout_ms=20000":        "",
		"data.hdfs.kerberos_ccache=other":   "",
		"training.accept_diverged=true":     "",
		"pipeline.batches_per_pass=5":       "pipeline.batches_per_pass",
		"training.batch_size=32":            "training.batch_size",
		"optimizer.dense.learning_rate=0.5": "optimizer.dense.learning_rate",
		"sparse_table.init_stddev=0.125":    "sparse_table.init_stddev",
		"sparse_table.value_format=float16": "sparse_table.value_format",
		"sparse_table.memory_bytes=128MiB":  "",
		"sparse_table.cache_policy=lru_lfu": "",
		"sparse_table.direct_io=off":        "",
		"sparse_table.queue_depth=8":        "",
		"sparse_table.hot_bytes=1MiB":       "",
	} {
		now := job("sparse_table.kind=ssd", "sparse_table.memory_bytes=64MiB", set)
		reasons, err := id.Differences(now, chain.New(now, testjobs.Quiet.Logger), dataset.Files{})
		if err != nil || !slices.Equal(reasons, slices.DeleteFunc(strings.Split(want, "; "), func(s string) bool { return s == "" })) {
			t.Errorf("%s: %q, %v; want %q", set, reasons, err, want)
		}
	}
}

// TestOtherRemote checks that the directory in which models are published may differ, unless the
// other directory may have the model to start from.
func TestOtherRemote(t *testing.T) {
	dir := t.TempDir()
	job := func(set ...string) *configs.Job { return jobIn(t, dir, set...) }
	start := &chain.Start{Name: "another"}
	for _, c := range []struct {
		warm  string
		start *chain.Start
		want  []string
	}{{"latest", nil, []string{"output.remote"}}, {"latest", start, nil}, {dir + "/another", start, nil}} {
		id, err := IdentityOf(job("training.warm_start="+c.warm, "output.remote=/one"), c.start, &dataset.Data{})
		if err != nil {
			t.Fatal(err)
		}
		now := job("training.warm_start="+c.warm, "output.remote=/two")
		reasons, err := id.Differences(now, chain.New(now, testjobs.Quiet.Logger), dataset.Files{})
		if err != nil || !slices.Equal(reasons, c.want) {
			t.Errorf("warm start %s, started from %v: %q, %v; want %q", c.warm, c.start, reasons, err, c.want)
		}
	}
}
