package trainer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/flow"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
)

// announced is a table that counts the keys that are announced to it.
type announced struct {
	sparsetable.Table
	keys atomic.Int64
}

func (a *announced) Announce(keys []uint64) {
	a.keys.Add(int64(len(keys)))
	a.Table.Announce(keys)
}

// checkNoted fails where the table had no room for more of the announced keys than
// find their line full by chance. A pass that is announced before the pass is pulled that
// lies a whole window before it is not noted at all; how many do is up to timing, and the
// keys of these are left out.
func (a *announced) checkNoted(t *testing.T) {
	t.Helper()
	st := a.Stats()
	beyond := a.keys.Load() - st.AnnouncedKeys
	if lost := st.NotAnnouncedKeys - beyond; lost > st.AnnouncedKeys/50 {
		t.Errorf("%d keys were not taken note of, %d were, %d were of passes beyond the window", lost, st.AnnouncedKeys, beyond)
	}
}

// TestEveryEpochLooksAhead checks that the passes of every epoch are announced to the table, with
// an evaluation after each epoch, and that no pass is announced that is not pulled.
func TestEveryEpochLooksAhead(t *testing.T) {
	want := train(t, job(t, "fm", "training.epochs=3")).Digest
	// After each pass: the keys that were announced so far, whether or not their pass lay
	// within the window, and the passes that are announced at present.
	var keys, left []int64
	opts := quiet
	opts.afterPass = func(_ context.Context, r *run) error {
		table := r.table.Table
		st := table.Stats()
		keys, left = append(keys, st.AnnouncedKeys+st.NotAnnouncedKeys), append(left, st.AnnouncedPasses)
		return nil
	}
	j := job(t, "fm", onSSD("training.epochs=3")...)
	if _, err := Train(t.Context(), j, opts); err != nil {
		t.Fatal(err)
	}
	if got := testjobs.Digest(t, j); got != want {
		t.Errorf("digest %s, in memory %s", got, want)
	}
	passes := (testjobs.TrainRows + 63) / 64
	if len(keys) != 3*passes {
		t.Fatalf("%d passes in 3 epochs, want %d", len(keys), 3*passes)
	}
	first := keys[passes-1]
	for epoch := 1; epoch < 3; epoch++ {
		// An evaluation lies between, whose passes are announced, too.
		grown := keys[(epoch+1)*passes-1] - keys[epoch*passes-1]
		if grown <= first {
			t.Errorf("epoch %d announced %d keys with the evaluation before it, the first epoch %d", epoch+1, grown, first)
		}
		if n := left[epoch*passes-1]; n != 0 {
			t.Errorf("%d passes are announced at the end of epoch %d", n, epoch)
		}
	}
}

// flows opens a table and returns a function that reads the job's training data as passes on it,
// with the given functions for mini-batches and for whole passes.
func flows(t *testing.T, set ...string) (table *announced, run func(batch func(*reader.Batch) error, done ...func(*reader.Pass) error) error) {
	t.Helper()
	j := job(t, "fm", onSSD(set...)...)
	o := jobparts.TableOptions(j)
	o.Dir, o.Layout = t.TempDir(), sparsetable.Layout{ValueDim: 4}
	opened, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	table = &announced{Table: opened}
	schema, err := jobparts.Schema(j)
	if err != nil {
		t.Fatal(err)
	}
	sources := jobsource.New(j, quiet.Logger)
	t.Cleanup(func() {
		if err := errors.Join(table.Close(), sources.Close()); err != nil {
			t.Error(err)
		}
	})
	for i := range schema.Columns {
		schema.Columns[i].Transforms = nil // without their statistics, which keys do not depend on
	}
	base := jobparts.ReaderOptions(j, sources, schema, quiet.Logger)
	return table, func(batch func(*reader.Batch) error, done ...func(*reader.Pass) error) error {
		rd, err := reader.Open(t.Context(), jobparts.TrainReaderOptions(base, j, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		f := flow.Flow{
			Stages: flow.Stages{Table: table, Limit: new(flow.Limit), Engine: idle{}, Queues: flow.QueuesOf(j), Bytes: new(flow.Gauge), Log: quiet.Logger},
			Reader: rd, Mode: sparsetable.PullCreate, Batch: batch,
		}
		for _, fn := range done {
			f.PassDone = fn
		}
		_, err = f.Run(t.Context())
		return err
	}
}

// TestStopWithdrawsPasses checks that if a run ends early, because it is stopped or fails, its
// announced passes are withdrawn from the table, and that the next run looks ahead again.
func TestStopWithdrawsPasses(t *testing.T) {
	table, run := flows(t)
	broken := errors.New("broken")
	for _, end := range []error{pipeline.ErrStop, broken, pipeline.ErrStop, nil} {
		before := table.Stats()
		n, most := 0, int64(0)
		err := run(func(*reader.Batch) error {
			// Reading runs ahead. A figure that was seen counts: the next one may be less.
			for most = max(most, table.Stats().AnnouncedPasses); most == 0; most = table.Stats().AnnouncedPasses {
				time.Sleep(time.Millisecond)
			}
			if n++; n == 5 {
				return end
			}
			return nil
		})
		if !errors.Is(err, broken) && err != nil || (err == nil) == (end == broken) {
			t.Fatalf("ended by %v: %v", end, err)
		}
		st := table.Stats()
		if most == 0 || st.AnnouncedPasses != 0 || st.PinnedSets != 0 {
			t.Errorf("ended by %v: %d passes are announced, %d at most before", end, st.AnnouncedPasses, most)
		}
		if st.AnnouncedKeys == before.AnnouncedKeys {
			t.Errorf("ended by %v: no keys were announced", end)
		}
		table.checkNoted(t)
	}
}

// TestReadAheadBytes checks that reading runs as far ahead as the table asks for, within the memory
// for waiting passes, and that the model is the same.
func TestReadAheadBytes(t *testing.T) {
	passes := int64((testjobs.TrainRows + 63) / 64)
	var size int64 // of a pass
	for _, c := range []struct {
		set         string
		least, most int64 // passes announced while the first mini-batch is trained
	}{
		{"pipeline.read_ahead_bytes=0", 1, 4}, // read_queue, one at hand, one at the table
		{"pipeline.read_ahead_bytes=1", 1, 4},
		{"pipeline.read_ahead_bytes=256MiB", passes - 6, passes},
		{"sparse_table.lookahead_passes=9", 8, 10},
		{"ten passes", 7, 14}, // and three on their way; not all are as large
	} {
		set := c.set
		if set == "ten passes" {
			set = fmt.Sprint("pipeline.read_ahead_bytes=", 10*size)
		}
		table, run := flows(t, set, "pipeline.pull_queue=1")
		first, most := true, int64(0)
		measure := func(p *reader.Pass) error {
			size = max(size, p.MemoryBytes())
			return nil
		}
		if err := run(func(*reader.Batch) error {
			most = max(most, table.Stats().AnnouncedPasses)
			if !first {
				return nil
			}
			first = false
			// A figure that was seen counts: the next one may be less, as the table pulls passes.
			for i := 0; i < 120_000 && most < c.least; i++ {
				time.Sleep(time.Millisecond)
				most = max(most, table.Stats().AnnouncedPasses)
			}
			if most < c.least {
				t.Errorf("%s: %d passes are announced, want %d and more", set, most, c.least)
			}
			time.Sleep(20 * time.Millisecond) // it might go too far
			most = max(most, table.Stats().AnnouncedPasses)
			return nil
		}, measure); err != nil {
			t.Fatal(err)
		}
		if most > c.most {
			t.Errorf("%s: %d passes were announced at a time, want %d at most", set, most, c.most)
		}
		table.checkNoted(t)
	}
	want := train(t, job(t, "fm")).Digest
	for _, set := range []string{"pipeline.read_ahead_bytes=0", "pipeline.read_ahead_bytes=100KiB", "pipeline.read_ahead_bytes=1GiB"} {
		if got := train(t, job(t, "fm", onSSD(set)...)).Digest; got != want {
			t.Errorf("%s: digest %s, want %s", set, got, want)
		}
	}
}

// idle is an engine in which passes only begin and end. The test does the rest.
type idle struct{ engine.Engine }

func (idle) Begin(engine.Pass) error { return nil }
func (idle) End() error              { return nil }
