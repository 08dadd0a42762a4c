package trainer

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/trainer/internal/testjobs"
)

// TestPassesAreSplit trains and evaluates with passes whose rows the table's memory
// does not hold: they are trained in parts, a line of log says so, the model is the
// same, and the budget that is needed is that of passes of one mini-batch.
func TestPassesAreSplit(t *testing.T) {
	for _, policy := range []string{"lookahead", "lru_lfu"} {
		set := []string{"model.embedding_dim=64", "sparse_table.cache_policy=" + policy}
		want := train(t, job(t, "fm", set[0], "pipeline.batches_per_pass=1")).Digest
		set = append(set, "sparse_table.kind=ssd", "pipeline.pull_queue=1", "pipeline.read_queue=1")
		budgets := map[string]int64{}
		for _, batches := range []string{"1", "50"} {
			var log bytes.Buffer
			opts := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Version: "test"}
			budgets[batches], _ = smallestWorks(t, func(budget int64) error {
				log.Reset()
				j := job(t, "fm", append(set, "pipeline.batches_per_pass="+batches, fmt.Sprint("sparse_table.memory_bytes=", budget))...)
				if _, err := Train(t.Context(), j, opts); err != nil {
					if text := err.Error(); !strings.Contains(text, "an empty table") && (!isBudget(err) || !strings.Contains(text, "training.batch_size") || !strings.Contains(text, "mini-batch")) {
						t.Errorf("the error names no settings: %v", err)
					}
					return err
				}
				if got := testjobs.Digest(t, j); got != want {
					t.Errorf("%s: %s mini-batches a pass, %d bytes: digest %s, want %s", policy, batches, budget, got, want)
				}
				return nil
			})
			lines := strings.Count(log.String(), "pipeline.batches_per_pass or a larger")
			if batches == "1" && lines != 0 || batches == "50" && lines != 1 {
				t.Errorf("%s: %s mini-batches a pass: %d lines say that passes are split:\n%s", policy, batches, lines, log.String())
			}
		}
		if one, fifty := budgets["1"], budgets["50"]; fifty > one*3/2 {
			t.Errorf("%s: passes of 50 mini-batches need %d bytes, of one %d", policy, fifty, one)
		}
	}
}

// TestTableInMemoryIsNotSplit checks that passes are not split for a table in memory that is full,
// since it stays full however few rows are requested.
func TestTableInMemoryIsNotSplit(t *testing.T) {
	var log bytes.Buffer
	opts := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Version: "test"}
	_, err := Train(t.Context(), job(t, "fm", "sparse_table.memory_bytes=1MiB", "model.embedding_dim=256"), opts)
	if !isBudget(err) || strings.Contains(log.String(), "in parts") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

func isBudget(err error) bool {
	return err != nil && strings.Contains(err.Error(), sparsetable.ErrBudget.Error())
}
