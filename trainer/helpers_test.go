package trainer

import (
	"context"
	"log/slog"
	"testing"

	"aibox/configs"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

const (
	testJob       = testjobs.Text
	testTrainRows = testjobs.TrainRows
	testEvalRows  = testjobs.EvalRows
)

func testLog() (string, error) { return testjobs.Log() }

func parseJob(kind string, set []string) (*configs.Job, error) { return testjobs.Parse(kind, set) }

func job(t *testing.T, kind string, set ...string) *configs.Job {
	t.Helper()
	return testjobs.Job(t, kind, set...)
}

func load(t *testing.T, dir string, set ...string) *inference.Model {
	t.Helper()
	return testjobs.Load(t, dir, set...)
}

var quiet = Options{Logger: slog.New(slog.DiscardHandler), Version: "test"}

// train runs a job that must succeed. The digest is filled in where the job does
// not compute it.
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
