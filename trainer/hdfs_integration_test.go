package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aibox/configs"
	"aibox/internal/hdfstest"
	"aibox/reader/source"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
)

// TestTrainFromHDFS trains on a real HDFS cluster while its parts fail. Whatever happens, the model
// must be the one trained on the undamaged bytes on the local disk, or there must be no model.
func TestTrainFromHDFS(t *testing.T) {
	t.Parallel() // it waits for the cluster most of the time
	if testing.Short() {
		t.Skip("SKIP: starts a cluster; not in short mode")
	}
	const dataNodes = 3
	cluster := hdfstest.Start(t, hdfstest.Config{DataNodes: dataNodes, Separate: true})
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"train-0.tsv", "train-1.tsv.gz", "eval.tsv"} {
		cluster.Put(t, filepath.Join(log, f), "/log/"+f, hdfstest.PutOptions{BlockBytes: 64 << 10})
	}
	options := []string{"training.epochs=2", "data.hdfs.timeout_ms=30000", "data.hdfs.retry_ms=600000", "pipeline.chunk_bytes=16KiB"}
	want := train(t, job(t, "fm", options...)).Digest

	hdfsJob := func(t *testing.T, train ...string) *configs.Job {
		j := job(t, "fm", options...)
		j.Data.Train, j.Data.Eval = nil, []string{cluster.URI("/log/eval.tsv")}
		for _, f := range train {
			j.Data.Train = append(j.Data.Train, cluster.URI("/log/"+f))
		}
		return j
	}
	same := func(t *testing.T, j *configs.Job) {
		t.Helper()
		if got := train(t, j).Digest; got != want {
			t.Errorf("digest %s, from the local disk %s", got, want)
		}
	}
	t.Run("plain", func(t *testing.T) { same(t, hdfsJob(t, "train-0.tsv", "train-1.tsv.gz")) })
	t.Run("glob", func(t *testing.T) { same(t, hdfsJob(t, "train-*")) })
	t.Run("erasure coded", func(t *testing.T) {
		cluster.ErasureCode(t, "/coded", "XOR-2-1-16k")
		for _, f := range []string{"train-0.tsv", "train-1.tsv.gz", "eval.tsv"} {
			cluster.Put(t, filepath.Join(log, f), "/coded/log/"+f, hdfstest.PutOptions{BlockBytes: 64 << 10})
		}
		for range 2 {
			j := hdfsJob(t)
			j.Data.Train, j.Data.Eval = []string{cluster.URI("/coded/log/train-*")}, []string{cluster.URI("/coded/log/eval.tsv")}
			j.Output.Remote = cluster.URI("/coded/models")
			same(t, j)
			for i, f := range []string{"train-0.tsv", "train-1.tsv.gz"} { // the second night decodes
				path, _ := cluster.InternalBlock(t, "/coded/log/"+f, 0, i)
				if err := os.WriteFile(path, []byte("damaged"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	t.Run("killed", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(log, "train-1.tsv.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, added := range []bool{false, true} {
			j := hdfsJob(t, "train-*")
			j.Snapshots.Every = "1 pass"
			if added {
				j.Data.Train = []string{cluster.URI("/grows/*")}
				cluster.PutBytes(t, data, "/grows/train-1.tsv.gz", hdfstest.PutOptions{})
			}
			if !killedAt(t, j, 3, true) {
				t.Fatal("not killed")
			}
			var said bytes.Buffer
			opts := quiet
			opts.Logger = slog.New(slog.NewTextHandler(&said, nil))
			if added {
				cluster.PutBytes(t, data, "/grows/train-2.tsv.gz", hdfstest.PutOptions{})
			}
			s, err := Train(t.Context(), j, opts)
			if err != nil {
				t.Fatal(err)
			}
			if goesOn := len(s.Resumed) == 1; goesOn == added || added != strings.Contains(said.String(), "/grows/train-2.tsv.gz was added") {
				t.Errorf("a file was added: %v; went on: %v; said %s", added, goesOn, said.String())
			}
			if !added && s.Digest != want {
				t.Errorf("digest %s, from the local disk %s", s.Digest, want)
			}
		}
	})
	t.Run("predictions into HDFS", func(t *testing.T) {
		j := hdfsJob(t, "train-*")
		same(t, j)
		l := load(t, j.Output.ModelDir)
		out := cluster.URI("/out/p.parquet")
		if _, err := l.Predict(t.Context(), inference.PredictOptions{Data: j.Data.Eval, Output: out, Columns: []string{"user"}}); err != nil {
			t.Fatal(err)
		}
		sources := jobsource.New(j, quiet.Logger)
		defer sources.Close()
		files, err := sources.Expand(t.Context(), []string{cluster.URI("/out/*")})
		if err != nil || len(files) != 1 || files[0].URI != out || files[0].Size == 0 {
			t.Errorf("written: %v, %v", files, err)
		}
	})
	t.Run("NameNode restarted in mid-run", func(t *testing.T) {
		j := hdfsJob(t, "train-*")
		restarted := make(chan error, 1)
		go func() {
			time.Sleep(50 * time.Millisecond)
			restarted <- cluster.RestartNameNode()
		}()
		defer func() {
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			cluster.WaitDataNodes(t, dataNodes)
		}()
		same(t, j)
	})
	t.Run("one DataNode hangs", func(t *testing.T) {
		cluster.StopDataNode(t, 0)
		defer cluster.ContDataNode(t, 0)
		same(t, hdfsJob(t, "train-*"))
	})
	t.Run("one replica corrupt on disk", func(t *testing.T) {
		// One replica of a block: it is reported to the NameNode, which drops it.
		for i, offset := range []int64{100, 70_000} {
			cluster.CorruptReplica(t, "/log/train-0.tsv", i, offset)
		}
		cluster.CorruptReplica(t, "/log/train-1.tsv.gz", 0, 5000)
		same(t, hdfsJob(t, "train-*"))
	})
	t.Run("all replicas corrupt on disk", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(log, "train-0.tsv"))
		if err != nil {
			t.Fatal(err)
		}
		cluster.PutBytes(t, data, "/log/rotten.tsv", hdfstest.PutOptions{BlockBytes: 64 << 10})
		cluster.CorruptAll(t, "/log/rotten.tsv", 40_000)
		j := hdfsJob(t, "rotten.tsv")
		_, err = Train(t.Context(), j, quiet)
		var corrupt *source.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("want a CorruptError, got %v", err)
		}
		if corrupt.URI != cluster.URI("/log/rotten.tsv") || corrupt.Offset > 40_000 || corrupt.Offset < 40_000-1024 {
			t.Errorf("the error names %s at %d, the damage is at 40000", corrupt.URI, corrupt.Offset)
		}
		if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
			t.Errorf("a model was committed: %v", err)
		}
	})
	t.Run("one DataNode dead", func(t *testing.T) {
		cluster.KillDataNode(t, 0)
		local := job(t, "fm", options...)
		local.Data.Train = local.Data.Train[1:] // the other file has corrupt replicas on the DataNode that is left
		if got, want := train(t, hdfsJob(t, "train-1.tsv.gz")).Digest, train(t, local).Digest; got != want {
			t.Errorf("digest %s, from the local disk %s", got, want)
		}
	})
	t.Run("HDFS down", func(t *testing.T) {
		j := hdfsJob(t, "train-*")
		j.Data.HDFS.RetryMs = 5000
		cluster.StopNameNode(t, 0)
		_, err := Train(t.Context(), j, quiet)
		if !errors.Is(err, source.ErrUnavailable) {
			t.Fatal(err)
		}
		// The pauses double from 50 ms up to 3 s: these are 8 attempts on an idle machine,
		// and a minute of retries has 26.
		var attempts int
		_, rest, again := strings.Cut(err.Error(), ", after ")
		if _, scanErr := fmt.Sscanf(rest, "%d attempts", &attempts); again && scanErr != nil || attempts > 12 {
			t.Errorf("%d attempts within 5 s: %v", attempts, err)
		}
	})
}
