package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// TestStateIsAll: a run whose state is written, thrown away and read back after every pass
// makes the same model, with the same metrics, as one that is left alone.
func TestStateIsAll(t *testing.T) {
	for name, set := range map[string][]string{
		"early stopping": {"training.epochs=4", "training.early_stopping={metric: auc, patience: 2}", "output.log_every=3"},
		"bf16":           {"training.epochs=2", bf16},
		"adam":           {"training.epochs=2", "optimizer.dense.kind=adam", "optimizer.rows.kind=adam", "optimizer.schedule={warmup_steps: 10, decay: cosine, decay_steps: 30}"},
	} {
		t.Run(name, func(t *testing.T) {
			left := job(t, "deepfm", set...)
			want := train(t, left)
			j := job(t, "deepfm", set...)
			opts := quiet
			passes := 0
			opts.afterPass = func(_ context.Context, r *run) error {
				passes++
				data, err := r.state.Encode()
				if err != nil {
					return err
				}
				lost := runstate.State{Engine: r.state.Engine}
				lost.Engine.Step, lost.Engine.FirstStep = -1, -1
				r.state = lost
				if err := r.state.Decode(data); err != nil {
					return err
				}
				again, err := r.state.Encode()
				if err == nil && !bytes.Equal(again, data) {
					t.Errorf("pass %d: the state was read back as another one:\n%s\n%s", passes, data, again)
				}
				return err
			}
			got, err := Train(t.Context(), j, opts)
			if err != nil {
				t.Fatal(err)
			}
			if passes < 4 || got.Digest != want.Digest || got.KeptEpoch != want.KeptEpoch || len(got.Epochs) != len(want.Epochs) {
				t.Errorf("%d passes: digest %s of epoch %d, want %s of epoch %d", passes, got.Digest, got.KeptEpoch, want.Digest, want.KeptEpoch)
			}
			read := func(dir string) string {
				lines, err := os.ReadFile(filepath.Join(dir, report.MetricsName))
				if err != nil {
					t.Fatal(err)
				}
				return string(lines)
			}
			if got, want := read(j.Output.ModelDir), read(left.Output.ModelDir); got != want {
				t.Errorf("metrics are\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestStateOfAnotherRun: a state that does not fit is refused.
func TestStateOfAnotherRun(t *testing.T) {
	var data []byte
	opts := quiet
	opts.afterPass = func(_ context.Context, r *run) (err error) {
		data, err = r.state.Encode()
		return err
	}
	if _, err := Train(t.Context(), job(t, "deepfm"), opts); err != nil {
		t.Fatal(err)
	}
	opts.afterPass = func(_ context.Context, r *run) error { return r.state.Decode(data) }
	if _, err := Train(t.Context(), job(t, "lr"), opts); err == nil || !strings.Contains(err.Error(), "state of training") {
		t.Errorf("a state of another model: %v", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	all["epock"] = all["epoch"]
	broken, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	opts.afterPass = func(_ context.Context, r *run) error { return r.state.Decode(broken) }
	if _, err := Train(t.Context(), job(t, "deepfm"), opts); err == nil || !strings.Contains(err.Error(), "epock") {
		t.Errorf("an unknown field: %v", err)
	}
}
