package trainer

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"aibox/internal/panics"
	"aibox/trainer/inference"
)

// panickyHandler is a slog.Handler that panics at a message: wherever the job
// logs it, a fault of the program happens there.
type panickyHandler struct {
	slog.Handler
	at string
}

func (h panickyHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.at {
		panic("at " + h.at)
	}
	return nil
}

func (h panickyHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h panickyHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h panickyHandler) WithGroup(string) slog.Handler            { return h }

// TestPanicLeavesTheEarlierModel checks that a panic while the job trains, on the goroutine of a
// stage or on the job's own, becomes an error, and that the earlier model is unchanged.
func TestPanicLeavesTheEarlierModel(t *testing.T) {
	j := job(t, "lr")
	train(t, j)
	inspect := func() string {
		in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, inference.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return in.Digest
	}
	before := inspect()
	j.Training.Epochs = 2
	for name, opts := range map[string]Options{
		"stage": {Logger: quiet.Logger, afterPass: func(context.Context, *run) error { panic("after a pass") }},
		"job":   {Logger: slog.New(panickyHandler{quiet.Logger.Handler(), "epoch trained"})},
		"end":   {Logger: slog.New(panickyHandler{quiet.Logger.Handler(), "evaluated"})},
	} {
		var p *panics.Error
		if _, err := Train(t.Context(), j, opts); !errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
		}
		if after := inspect(); after != before {
			t.Errorf("%s: the model is %s, was %s", name, after, before)
		}
		if left, _ := filepath.Glob(filepath.Join(j.Output.ModelDir, "gen-*")); len(left) != 1 {
			t.Errorf("%s: generations left: %v", name, left)
		}
	}
}
