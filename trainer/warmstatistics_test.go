package trainer

import (
	"encoding/json"
	"testing"

	"aibox/reader"
	"aibox/trainer/inference"
)

// TestWarmStartKeepsStatisticsOfTheSameNumbers: means and deviations stay where the numbers that
// they are of come from the same transforms; those of logarithms do not stand for plain numbers.
func TestWarmStartKeepsStatisticsOfTheSameNumbers(t *testing.T) {
	const column = "data.columns[2].transform="
	statistics := func(l *inference.Model) reader.ColumnStatistics {
		var s reader.Statistics
		if err := json.Unmarshal(l.Saved.Statistics, &s); err != nil || len(s.Columns) != 1 {
			t.Fatalf("statistics %+v, %v", s, err)
		}
		return s.Columns[0]
	}
	const clip, narrow, log = column + "[{clip: {min: 0, max: 100}}, standardize]", column + "[{clip: {min: 0, max: 2}}, standardize]", column + "[log1p, standardize]"
	for _, c := range []struct {
		before, now string
		kept        bool
	}{{log, log, true}, {clip, narrow, true}, {log, clip, false}, {clip, log, false}} {
		dir, _ := firstNight(t, "lr", c.before)
		j := job(t, "lr", c.now, "data.limit=64", "data.shuffle_buffer=0")
		train(t, j)
		want := statistics(load(t, j.Output.ModelDir)) // of a new model
		if c.kept {
			want = statistics(load(t, dir))
		}
		if got := statistics(stillNight(t, "lr", dir, c.now)); got != want {
			t.Errorf("from %s to %s: %+v, want %+v", c.before, c.now, got, want)
		}
	}
}
