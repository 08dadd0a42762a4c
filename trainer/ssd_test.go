package trainer

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
)

// onSSD are overrides of a job whose table is on SSD, with a small cache.
func onSSD(set ...string) []string {
	return append([]string{"sparse_table.kind=ssd", "sparse_table.memory_bytes=16MiB", "pipeline.batches_per_pass=1"}, set...)
}

// TestSeveralDirs trains over three directories: the model is that of a table in
// memory, each directory holds a part once rows are in their buckets, and the next run
// clears them.
func TestSeveralDirs(t *testing.T) {
	want := train(t, job(t, "deepfm")).Digest
	at := t.TempDir()
	dirs := "sparse_table.dirs=[" + filepath.Join(at, "a") + "," + filepath.Join(at, "b") + "," + filepath.Join(at, "c") + "]"
	for _, set := range [][]string{
		onSSD(dirs),
		onSSD(dirs, "sparse_table.cache_policy=lru_lfu"),
		onSSD(dirs, "sparse_table.lookahead_passes=1", "sparse_table.queue_depth=1", "sparse_table.direct_io=off", "sparse_table.max_space_amplification=1.1"),
	} {
		j := job(t, "deepfm", append(set, "output.keep_generations=1")...)
		s := train(t, j)
		if s.Digest != want {
			t.Errorf("%v: digest %s, want %s", set, s.Digest, want)
		}
		writeBuckets(t, j)
		for _, d := range []string{"a", "b", "c"} {
			files, err := filepath.Glob(filepath.Join(at, d, "model-gen-000001-*", "*.bucket"))
			if err != nil || len(files) == 0 {
				t.Errorf("directory %s holds no buckets: %v", d, err)
			}
		}
		if in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, inference.Options{}); err != nil || in.Digest != want {
			t.Errorf("inspect: %v", err)
		}
		train(t, j)
		for _, d := range []string{"a", "b", "c"} {
			all, err := filepath.Glob(filepath.Join(at, d, "*"))
			if err != nil || len(all) != 1 || filepath.Base(all[0])[:17] != "model-gen-000002-" {
				t.Errorf("directory %s holds %v, %v", d, all, err)
			}
			if err := os.RemoveAll(filepath.Join(at, d)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// writeBuckets writes all rows of a job's model to their buckets, for a snapshot beside the
// model's.
func writeBuckets(t *testing.T, j *configs.Job) {
	t.Helper()
	found, err := modeltable.Find(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Model.Close()
	table, err := sparsetable.Open(t.Context(), found.Options)
	if err != nil {
		t.Fatal(err)
	}
	err = table.(sparsetable.Flusher).Flush(t.Context())
	if err == nil {
		var p *sparsetable.PendingSnapshot
		if p, err = table.Snapshot(t.Context(), nil); err == nil {
			_, err = p.Wait()
		}
	}
	if err := errors.Join(err, table.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestWarmStartOverDirs goes on from a model over two directories.
func TestWarmStartOverDirs(t *testing.T) {
	at := t.TempDir()
	first := job(t, "fm")
	train(t, first)
	want := train(t, job(t, "fm", "training.warm_start="+first.Output.ModelDir)).Digest
	over := job(t, "fm", onSSD("sparse_table.dirs=["+at+"/a,"+at+"/b]")...)
	train(t, over)
	next := job(t, "fm", onSSD("sparse_table.dirs=["+at+"/a,"+at+"/b]", "training.warm_start="+over.Output.ModelDir)...)
	if got := train(t, next).Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestTableKeys checks that every key of the job file for tables on SSD takes effect.
func TestTableKeys(t *testing.T) {
	j := job(t, "fm", onSSD("sparse_table.cache_policy=lookahead", "sparse_table.lookahead_passes=7", "sparse_table.dir_budget_bytes=3GiB",
		"sparse_table.max_space_amplification=1.7", "sparse_table.direct_io=off", "sparse_table.queue_depth=33", "sparse_table.hot_bytes=5MiB")...)
	want := sparsetable.Options{Kind: sparsetable.KindSSD, MemoryBytes: 16 << 20, SSD: sparsetable.SSDOptions{
		CachePolicy: "lookahead", LookaheadPasses: 7, MaxSpaceAmplification: 1.7, DirBudgetBytes: 3 << 30, QueueDepth: 33, Direct: "off", HotBytes: 5 << 20,
	}}
	got := jobparts.TableOptions(j)
	if got.Kind != want.Kind || got.MemoryBytes != want.MemoryBytes || got.SSD.CachePolicy != want.SSD.CachePolicy ||
		got.SSD.LookaheadPasses != want.SSD.LookaheadPasses || got.SSD.DirBudgetBytes != want.SSD.DirBudgetBytes ||
		math.Abs(got.SSD.MaxSpaceAmplification-1.7) > 1e-12 || got.SSD.QueueDepth != want.SSD.QueueDepth || got.SSD.Direct != want.SSD.Direct ||
		got.SSD.HotBytes != want.SSD.HotBytes {
		t.Errorf("%+v, want %+v", got, want)
	}
	if o := jobparts.TableOptions(job(t, "fm")); o.Kind != sparsetable.KindMemory || o.SSD.CachePolicy != "" {
		t.Errorf("in memory: %+v", o)
	}
	if o := jobparts.TableOptions(job(t, "fm", onSSD("sparse_table.hot_bytes=-1")...)); o.SSD.HotBytes != -1 {
		t.Errorf("no hot rows: %+v", o)
	}
	for _, bad := range []string{"sparse_table.queue_depth=5", "sparse_table.hot_bytes=5", "sparse_table.dirs=[/x]", "pipeline.read_ahead_bytes=5"} {
		if _, err := testjobs.Parse("fm", []string{"data.train=[x]", "output.model_dir=y", bad}); !errors.As(err, new(configs.FaultsError)) {
			t.Errorf("%s in memory: %v", bad, err)
		}
	}
}

// details are those of a job's trained table.
func details(t *testing.T, j *configs.Job) *sparsetable.Details {
	t.Helper()
	m, err := modeldir.Open(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	table, err := m.OpenTable(t.Context(), jobparts.TableOptions(j))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	d, err := sparsetable.DetailsOf(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTableKeysHaveEffect sees the effect of those that leave a trace in a small
// table; that of the others is seen by the tests of package sparsetable.
func TestTableKeysHaveEffect(t *testing.T) {
	off := job(t, "fm", onSSD("sparse_table.direct_io=off")...)
	train(t, off)
	if d := details(t, off); d.Directories[0].Direct {
		t.Error("direct I/O, though it is off")
	}
	full := job(t, "fm", onSSD("sparse_table.dir_budget_bytes=16KiB", "sparse_table.lookahead_passes=1")...)
	if _, err := Train(context.Background(), full, quiet); !errors.Is(err, sparsetable.ErrNoSpace) {
		t.Errorf("a directory budget of 16 KiB: %v", err)
	}
}

// TestEndOfAJobReadsNoTable checks that a job does not compute the digest of a table on SSD, which
// would read the whole table, and does not write updated rows to their buckets, which would read
// these: readers take the rows from the snapshot's delta file.
func TestEndOfAJobReadsNoTable(t *testing.T) {
	want := train(t, job(t, "fm")).Digest
	j := job(t, "fm", onSSD()...)
	s, err := Train(t.Context(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := modeldir.Open(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	if s.Digest != "" || saved.Digest != "" {
		t.Errorf("digests %q and %q were computed", s.Digest, saved.Digest)
	}
	if got := testjobs.Digest(t, j); got != want {
		t.Errorf("digest %s, in memory %s", got, want)
	}
	if n := s.Table.RewriteReads; n != 0 {
		t.Errorf("%d buckets were read to be written again", n)
	}
	if d := details(t, j).Stats; d.OutsideBytes == 0 {
		t.Errorf("all rows are in their buckets: %+v", d)
	}
}

// TestSpaceInSummary checks that the summary of a night reports the disk space of its model,
// without files that only snapshots of training needed.
func TestSpaceInSummary(t *testing.T) {
	j := job(t, "fm", onSSD("training.warm_start=latest", "snapshots.every=1 passes", "sparse_table.expiry.min_show=2")...)
	train(t, j)
	writeBuckets(t, j)
	s, err := Train(t.Context(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	got, want := s.Table, details(t, j).Stats
	// Compaction may have written a little since the last snapshot.
	if float64(got.DiskBytes) > 1.2*float64(want.DiskBytes) || got.RowSpaceAmplification > 1.2*want.RowSpaceAmplification {
		t.Errorf("%d bytes on disk, %.3f per byte of a row; the model takes %d, %.3f", got.DiskBytes, got.RowSpaceAmplification, want.DiskBytes, want.RowSpaceAmplification)
	}
}
