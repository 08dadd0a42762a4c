package inference_test

import (
	"log/slog"
	"os"
	"testing"

	"aibox/configs"
	"aibox/trainer"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

func TestMain(m *testing.M) { os.Exit(testjobs.Main(m)) }

// train runs a job that must succeed.
func train(t *testing.T, j *configs.Job) *report.Summary {
	t.Helper()
	s, err := trainer.Train(t.Context(), j, trainer.Options{Logger: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
