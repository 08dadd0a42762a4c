package trainer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/model"
)

// These tests kill jobs of all kinds with SIGKILL. Each job runs in a process of its own, which
// kills itself before an operation on disk that a seed has chosen: in the middle of a snapshot, of
// an update of the table, or of the commit of the model.

// crashVariable makes the test program train the job of a file, and die at an operation: "42
// job.yaml". 0 means never. -1 also means never, but then training waits for uploads.
const crashVariable = "AIBOX_TEST_CRASH"

// crashChild trains as crashVariable says, and reports whether it was set.
func crashChild() (code int, is bool) {
	at, file, is := strings.Cut(os.Getenv(crashVariable), " ")
	if !is {
		return 0, false
	}
	err := func() error {
		n, err := strconv.Atoi(at)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		j, err := configs.Parse(file, text, configs.LoadOptions{Saved: true})
		if err != nil {
			return err
		}
		disk := &faultyDisk{on: true, fails: func(operation int) error {
			if operation == n {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
			return nil
		}}
		diskfault.Inject(disk.ask)
		opts := quiet
		opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		opts.tableFS = disk
		if n < 0 {
			passes := 0
			opts.afterPass = func(ctx context.Context, r *run) error {
				if passes++; passes%2 == 0 { // in between, training goes on during an upload
					r.snapshots.wait()
					r.snapshots.uploads.Finish(ctx)
				}
				return nil
			}
		}
		_, err = Train(context.Background(), j, opts)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// trainAndDie trains a job in a process that dies at an operation. It reports whether the process
// ended before that.
func trainAndDie(t *testing.T, file string, at int) (done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", crashVariable, at, file))
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return true
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == -1 && at > 0:
		return false
	}
	t.Fatalf("%v\n%s", err, out)
	return false
}

// one returns a random one of several.
func one[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// crashJob makes a random job, without its snapshots: its text and its overrides.
func crashJob(rng *rand.Rand, parquet string) (text string, set []string) {
	kind := one(rng, model.Kinds()...)
	text = strings.Replace(testjobs.Text, "KIND", kind, 1)
	train, eval := "LOG/train-0.tsv, LOG/train-1.tsv.gz", "LOG/eval.tsv"
	if rng.IntN(3) == 0 {
		text = strings.NewReplacer("tsv", "parquet", "  header: true\n", "").Replace(text)
		train, eval = parquet, parquet
	}
	set = []string{"data.train=[" + train + "]", "data.eval=[" + eval + "]"}
	if kind != "lr" {
		set = append(set, "model.embedding_dim=4")
	}
	set = append(set, extras[kind]...)
	set = append(set, one(rng, nil,
		[]string{"sparse_table.memory_bytes=64MiB"},
		onSSD(), onSSD("sparse_table.dirs=[MODEL-a, MODEL-b]"), onSSD("sparse_table.dirs=[MODEL-a, MODEL-b, MODEL-c]"),
		onSSD("sparse_table.cache_policy=lru_lfu"))...)
	set = append(set, one(rng, nil, nil,
		[]string{"optimizer.rows={kind: adagrad, table_l2: 0.01}"},
		[]string{"optimizer.rows={kind: rowwise_adagrad, table_l2: 0.01}"},
		[]string{"optimizer.rows={kind: adam, weight_decay: 0.5}"},
		[]string{"sparse_table.expiry.min_show=2"})...)
	if rng.IntN(3) == 0 {
		set = append(set, averaging)
	}
	set = append(set,
		"sparse_table.value_format="+one(rng, "float32", "float16", "bfloat16"),
		"data.shuffle_buffer="+one(rng, "0", "130", "5000"),
		"data.negative_sampling="+one(rng, "1", "0.5"),
		"pipeline.batches_per_pass="+one(rng, "1", "3", "8"),
		"pipeline.chunk_bytes="+one(rng, "4KiB", "4MiB"),
		"output.log_every="+one(rng, "1", "7"),
	)
	return text, append(set, one(rng,
		[]string{"training.epochs=1"}, []string{"training.epochs=2"},
		[]string{"training.epochs=3", "training.early_stopping={metric: log_loss, patience: 1}", "optimizer.rows.learning_rate=0.2"})...)
}

// TestCrash kills jobs of all kinds at random moments, several times each, and lets the next
// process resume. In the end there must be the model and the reports of a job without interruption.
func TestCrash(t *testing.T) {
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	parquet := testjobs.Parquet(t, func(j *configs.Job) []string { return j.Data.Train })
	wentOn := 0
	for n := range tabletest.Kills(t, 12, 3) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			rng := testseed.Rand(t)
			text, set := crashJob(rng, parquet)
			prepare := func(every string) (*configs.Job, string) {
				dir := t.TempDir()
				all := append(slices.Clone(set), "output.model_dir=MODEL", "snapshots.every="+every)
				for i, s := range all {
					all[i] = strings.NewReplacer("LOG", log, "MODEL", filepath.Join(dir, "model")).Replace(s)
				}
				j, err := configs.Parse("test.yaml", []byte(text), configs.LoadOptions{Set: all})
				if err != nil {
					t.Fatal(err)
				}
				var shown bytes.Buffer
				if err := j.Show(&shown); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, "job.yaml")
				if err := os.WriteFile(file, shown.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return j, file
			}
			left, _ := prepare("none")
			want := outcome(t, left, train(t, left))
			j, file := prepare(one(rng, "1 pass", "2 passes", "500 examples", "1ms"))
			kills := []int{}
			for len(kills) < 4 {
				at := 1 + rng.IntN(1<<(3+rng.IntN(7)))
				if trainAndDie(t, file, at) {
					break
				}
				kills = append(kills, at)
			}
			if _, err := os.Stat(filepath.Join(j.Output.ModelDir, "MODEL.json")); err != nil {
				trainAndDie(t, file, 0)
			}
			s := readSummary(t, j)
			t.Logf("killed at the operations %v; went on %d times", kills, len(s.Resumed))
			wentOn += len(s.Resumed)
			got := outcome(t, j, s)
			got.compare(t, &want)
			if t.Failed() {
				t.Logf("%s\n%s", text, strings.Join(set, "\n"))
			}
		})
	}
	if wentOn == 0 && !testing.Short() {
		t.Error("no job has gone on")
	}
}
