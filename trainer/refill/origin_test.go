package refill

import (
	"log/slog"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/runstate"
)

// TestOriginIsThatModel: lost rows do not go back to another model that has the name of the one
// with which the run began.
func TestOriginIsThatModel(t *testing.T) {
	dir := t.TempDir()
	w, err := modeldir.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := modeldir.Manifest{Dense: modeldir.DenseName(1), Step: 1, KeptShare: 1}
	if err := w.SaveDense(m.Dense, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(&m, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for identity, want := range map[string]string{m.ID: "", "": "", "gone": "another model has that name now"} {
		start := &chain.Start{Origin: modeldir.Origin{Generation: "gen-000001", Identity: identity}, Name: modeldir.JoinName(dir, 1)}
		r := &Run{Job: new(configs.Job), Store: &remotesnapshots.Store{Log: slog.Default()}, Record: new(runstate.Record), Start: start}
		_, err := r.origin(t.Context(), t.TempDir())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", identity, err, want)
		}
	}
}
