package trainer

import (
	"context"
	"log/slog"
	"testing"

	"aibox/configs"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

var (
	job  = testjobs.Job
	load = testjobs.Load
)

var quiet = Options{Logger: slog.New(slog.DiscardHandler), Version: "test"}

// train runs a job that must succeed. It computes the digest if the job does not.
func train(t *testing.T, j *configs.Job) *report.Summary {
	t.Helper()
	s, err := Train(context.Background(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest == "" {
		s.Digest = testjobs.Digest(t, j)
	}
	return s
}
