package start

import (
	"testing"

	"aibox/configs"
	"aibox/trainer/chain"
)

const laterJob = `data:
  train: [a]
  format: libsvm
  columns: [{name: x, role: sparse}]
model: {kind: lr}
output: {model_dir: m}
`

// TestMissesNights checks that a missing hour counts as a missing night, even if the nights of a
// day share a model directory.
func TestMissesNights(t *testing.T) {
	for _, c := range []struct {
		train, dir, date, from string
		want                   bool
	}{
		{"a", "m-{{date}}", "2026-11-20", "2026-11-19", false},
		{"a", "m-{{date}}", "2026-11-20", "2026-11-18", true},
		{"a", "m-{{date}}", "2026-11-20", "2026-11-20", false},
		{"a", "m-{{date}}", "2026-11-20", "", false},
		{"a-{{date}}", `m-{{date \"200601\"}}`, "2026-11-20", "2026-11-19", false},
		{"a-{{date}}", `m-{{date \"200601\"}}`, "2026-11-20", "2026-11-18", true},
		{"a", "m-{{date}}", "2026-11-20T06", "2026-11-20T05", false},
		{"a", "m-{{date}}", "2026-11-20T06", "2026-11-20T03", true},
		{"a", "m-{{date}}", "2026-11-20T06", "2026-11-19T07", true},
		{"a", "m-{{date}}", "2026-11-20T00", "2026-11-19T23", false},
		{"a", "m-{{date}}", "2026-11-20T00", "2026-11-19", false},
		{"a", `m-{{date \"2006010215\"}}`, "2026-11-20T06", "2026-11-20T05", false},
		{"a", `m-{{date \"2006010215\"}}`, "2026-11-20T06", "2026-11-20T04", true},
	} {
		job, err := configs.Parse("job.yaml", []byte(laterJob), configs.LoadOptions{Date: c.date, Set: []string{
			`data.train=["` + c.train + `"]`, `output.model_dir="` + c.dir + `"`, "timezone=UTC"}})
		if err != nil {
			t.Fatal(err)
		}
		m := Model{Options: Options{Job: job}}
		if got := m.missesNights(&chain.Choice{Night: c.from}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
