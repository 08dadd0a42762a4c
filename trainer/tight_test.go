package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
)

// smallestWorks calls do with larger and larger budgets, in bytes: the first and
// those that its errors ask for, until one is enough. It returns that one, and
// how many were not.
func smallestWorks(t *testing.T, do func(budget int64) error) (budget int64, asked int) {
	t.Helper()
	for budget = 1 << 20; ; asked++ {
		err := do(budget)
		if err == nil {
			return budget, asked
		}
		named := regexp.MustCompile(`needs a budget of (\d+) bytes`).FindStringSubmatch(err.Error())
		if !errors.Is(err, sparsetable.ErrBudget) || len(named) != 2 || asked == 10 {
			t.Fatalf("with a budget of %d bytes: %v", budget, err)
		}
		more, err := strconv.ParseInt(named[1], 10, 64)
		if err != nil || more <= budget {
			t.Fatalf("a budget of %d bytes is not enough, %q are asked for: %v", budget, named[1], err)
		}
		budget = more
	}
}

// syncBuffer is a buffer that several goroutines write and read.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestPassesWaitForMemory trains with queues that hold far more passes than the
// table's memory: fewer are in flight, and the model is the same. The end of the first
// pass is held up until the table has no memory for one more.
func TestPassesWaitForMemory(t *testing.T) {
	set := []string{"model.embedding_dim=64", "pipeline.batches_per_pass=1", "pipeline.read_queue=20"}
	want := train(t, job(t, "fm", set...)).Digest
	set = append(set, "sparse_table.kind=ssd")
	budgets := map[string]int64{}
	for _, queue := range []string{"1", "30"} {
		const waiting = "cannot hold the rows of all passes"
		var log *syncBuffer
		budget, asked := smallestWorks(t, func(budget int64) error {
			log = new(syncBuffer)
			opts := Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Version: "test"}
			if queue == "30" {
				opts.afterPass = func(ctx context.Context, _ *run) error {
					for end := time.Now().Add(2 * time.Minute); !strings.Contains(log.String(), waiting) && time.Now().Before(end) && ctx.Err() == nil; {
						time.Sleep(time.Millisecond)
					}
					return ctx.Err()
				}
			}
			j := job(t, "fm", append(set, "pipeline.pull_queue="+queue, fmt.Sprint("sparse_table.memory_bytes=", budget))...)
			if _, err := Train(t.Context(), j, opts); err != nil {
				return err
			}
			if got := testjobs.Digest(t, j); got != want {
				t.Errorf("pull_queue %s, %d bytes: digest %s, want %s", queue, budget, got, want)
			}
			return nil
		})
		if asked == 0 {
			t.Errorf("pull_queue %s: 1 MiB is enough, the test tests nothing", queue)
		}
		if waits := strings.Count(log.String(), waiting); queue == "30" && (waits == 0 || waits > 2) {
			t.Errorf("%d warnings that passes wait, want one for training and one for the evaluation at most:\n%s", waits, log.String())
		}
		budgets[queue] = budget
	}
	// What is in flight is up to timing; that a single pass fits is not.
	if few, many := budgets["1"], budgets["30"]; many > few*3/2 {
		t.Errorf("30 passes in the queue need %d bytes, one %d", many, few)
	}
}

// makeDirty replaces the snapshot of a job's model by one whose rows were all
// dirty: their buckets hold others.
func makeDirty(t *testing.T, j *configs.Job) {
	t.Helper()
	m, err := modeldir.Open(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o, err := m.TableOptions(jobparts.TableOptions(j))
	if err != nil {
		t.Fatal(err)
	}
	table, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var keys []uint64
	if err := table.Scan(t.Context(), func(key uint64, _ []float32) error {
		keys = append(keys, key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	negate := func() {
		rows, err := table.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			row := rows.Row(i)
			for j := range table.Layout().ValueDim {
				row[j] = -row[j]
			}
		}
		rows.Release()
	}
	negate()
	if err := table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	negate()
	p, err := table.Snapshot(t.Context(), m.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	edit, err := m.Edit()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(edit.SetTableSnapshot(info.ID), edit.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestBudgetLeavesNoTraceInPredictions predicts and evaluates with the smallest
// budget that works, which holds a part of the rows that were in memory when the
// model was saved, and with one that holds all.
func TestBudgetLeavesNoTraceInPredictions(t *testing.T) {
	set := []string{"model.embedding_dim=256", "pipeline.batches_per_pass=1"}
	inMemory := job(t, "deepfm", set...)
	train(t, inMemory)
	onDisk := job(t, "deepfm", append(set, "sparse_table.kind=ssd", "sparse_table.memory_bytes=64MiB")...)
	train(t, onDisk)
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	use := func(dir string, budget int64, over ...string) (predictions string, e *inference.Evaluation, resident int64, err error) {
		if budget > 0 {
			over = append(over, fmt.Sprint("sparse_table.memory_bytes=", budget))
		}
		l, err := inference.Load(t.Context(), dir, configs.LoadOptions{Set: over}, testjobs.Quiet)
		if err != nil {
			return "", nil, 0, err
		}
		defer l.Close()
		out := filepath.Join(t.TempDir(), "p.csv")
		if _, err := l.Predict(t.Context(), inference.PredictOptions{Data: []string{log + "/eval.tsv"}, Output: out, Columns: []string{"user"}}); err != nil {
			return "", nil, 0, err
		}
		if e, err = l.Evaluate(t.Context(), []string{log + "/eval.tsv"}); err != nil {
			return "", nil, 0, err
		}
		text, err := os.ReadFile(out)
		st := l.Table.Stats()
		if st.BudgetBytes > 0 && st.MemoryBytes > st.BudgetBytes {
			t.Errorf("%d bytes of memory, budget %d", st.MemoryBytes, st.BudgetBytes)
		}
		return string(text), e, st.CacheRows, err
	}
	want, wantReport, _, err := use(inMemory.Output.ModelDir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(want, "\n"); n != testjobs.EvalRows+1 {
		t.Fatalf("%d lines of predictions", n)
	}
	all, report, _, err := use(onDisk.Output.ModelDir, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	if all != want || fmt.Sprint(report.Metrics) != fmt.Sprint(wantReport.Metrics) {
		t.Errorf("a large budget: %+v, in memory %+v; the predictions are the same: %v", report.Metrics, wantReport.Metrics, all == want)
	}
	makeDirty(t, onDisk)
	if d := details(t, onDisk).Stats; d.OutsideBytes == 0 {
		t.Fatalf("no row is dirty: %+v", d)
	}
	rows := details(t, onDisk).Stats.Rows
	budget, asked := smallestWorks(t, func(budget int64) error {
		few, report, resident, err := use(onDisk.Output.ModelDir, budget)
		if err != nil {
			return err
		}
		if few != want || fmt.Sprint(report.Metrics) != fmt.Sprint(wantReport.Metrics) {
			t.Errorf("%d bytes: %+v, in memory %+v; the predictions are the same: %v", budget, report.Metrics, wantReport.Metrics, few == want)
		}
		if resident*3 > rows {
			t.Errorf("%d of %d rows are in memory, the test tests little", resident, rows)
		}
		return nil
	})
	t.Logf("%d bytes for %d rows, after %d that were too few", budget, rows, asked)
	// With more, rows are read ahead; without a hot set, from the device.
	for _, more := range []int64{1 << 20, 4 << 20, 16 << 20} {
		some, report, _, err := use(onDisk.Output.ModelDir, budget+more, "sparse_table.hot_bytes=-1")
		if err != nil {
			t.Fatal(err)
		}
		if some != want || fmt.Sprint(report.Metrics) != fmt.Sprint(wantReport.Metrics) {
			t.Errorf("%d bytes, no hot set: %+v, in memory %+v; the predictions are the same: %v", budget+more, report.Metrics, wantReport.Metrics, some == want)
		}
	}
}
