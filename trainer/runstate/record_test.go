package runstate

import (
	"fmt"
	"testing"

	"aibox/configs"
	"aibox/reader"
)

// TestResumptionFormats checks that a run is resumed from what this version and earlier ones have
// saved, and not from what a later version has saved.
func TestResumptionFormats(t *testing.T) {
	for format, want := range map[int]bool{0: false, oldestResume: true, RecordFormat: true, RecordFormat + 1: false} {
		_, _, err := Decode(fmt.Appendf(nil, `{"format": %d, "run": {}}`, format))
		if (err == nil) != want {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

// TestTotalExamples checks that in the first epoch the total number of examples to be trained,
// without those that are held out, is estimated from the part of the data that was read.
func TestTotalExamples(t *testing.T) {
	read := &reader.Cursor{}
	read.Counts.Examples, read.Counts.BytesRead, read.Counts.BytesTotal = 100, 1000, 10_000
	for _, c := range []struct {
		held       float64
		limit, max int64
		reader     *reader.Cursor
		want       int64
	}{
		{0, 0, 0, read, 2000},
		{0.25, 0, 0, read, 1500},
		{0.25, 400, 0, read, 600},
		{0.25, 0, 700, read, 700},
		{0.25, 0, 0, nil, 200},
	} {
		job := new(configs.Job)
		job.Data.ValidationFraction, job.Data.Limit, job.Training.MaxExamples, job.Training.Epochs = c.held, c.limit, c.max, 2
		x := &Record{State: []byte(`{"examples": 100}`), Reader: c.reader}
		if got := x.TotalExamples(job); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
