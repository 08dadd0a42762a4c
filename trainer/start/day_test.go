package start

import (
	"strings"
	"testing"
	"time"

	"aibox/configs"
	"aibox/trainer/modeldir"
)

// TestDay checks that a job with a date counts days since 1970, and that one without a date counts
// as a day after its model. A date before that of the model would give rows a wrong age.
func TestDay(t *testing.T) {
	const date, without = 20_000, 7
	dated := &modeldir.Model{Manifest: modeldir.Manifest{Day: date, DayFromDate: true}}
	counted := &modeldir.Model{Manifest: modeldir.Manifest{Day: without}}
	for _, c := range []struct {
		name     string
		dated    bool
		after    int // days after date
		previous *modeldir.Model
		want     uint32
		fault    string
	}{
		{"a first run", false, 0, nil, 1, ""},
		{"the next one", false, 0, counted, without + 1, ""},
		{"a first night", true, 0, nil, date, ""},
		{"a night later", true, 3, dated, date + 3, ""},
		{"a night before", true, -1, dated, 0, "which is after this job's date"},
		{"before 1970", true, -date, nil, 0, "it must be after 1970-01-01"},
		{"a date at last", true, 0, counted, date, ""},
		{"a date no more", false, 0, dated, 0, "this job has no date"},
	} {
		job := &configs.Job{Dated: c.dated, Date: time.Unix(int64(date+c.after)*secondsPerDay, 0).UTC()}
		m := Model{Options: Options{Job: job}, Previous: c.previous}
		got, err := m.Day()
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: day %d, %v; want %d, %q", c.name, got, err, c.want, c.fault)
		}
	}
	rowsDoNotAge := Model{Options: Options{Job: &configs.Job{SparseTable: configs.SparseTable{ShowDecay: 1}}}, Previous: dated}
	if got, err := rowsDoNotAge.Day(); got != date+1 || err != nil {
		t.Errorf("a date no more, where rows do not age: day %d, %v", got, err)
	}
}

// TestDaysBetween checks that nights with an hour count as their days, and that anything that is no
// night counts as next to any other.
func TestDaysBetween(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"2026-02-27", "2026-03-02", 3}, {"2026-11-17T23", "2026-11-18T00", 1}, {"", "2026-11-18", 0}} {
		if got := daysBetween(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q there are %d days, want %d", c.a, c.b, got, c.want)
		}
	}
}
