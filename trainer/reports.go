package trainer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/configs"
	"aibox/trainer/metrics"
)

// reports writes metrics while a job runs: JSON lines and TensorBoard events.
type reports struct {
	lines  *metrics.JSONLWriter
	events *metrics.EventWriter // nil: output.tensorboard is "none"
}

// metricsLine is one line of the metrics file.
type metricsLine struct {
	Kind     string `json:"kind"` // train (online, since the line before) or eval
	Epoch    int    `json:"epoch"`
	Step     int64  `json:"step"`
	Examples int64  `json:"trained_examples,omitempty"`
	metrics.Report
}

func openReports(job *configs.Job) (*reports, error) {
	r := new(reports)
	path := or(job.Output.Metrics, filepath.Join(job.Output.ModelDir, "metrics.jsonl"))
	// The file is of this run alone.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("output.metrics: %w", err)
	}
	var err error
	if r.lines, err = metrics.CreateJSONL(path); err != nil {
		return nil, fmt.Errorf("output.metrics: %w", err)
	}
	if job.Output.TensorBoard == "none" {
		return r, nil
	}
	if r.events, err = metrics.CreateEvents(or(job.Output.TensorBoard, filepath.Join(job.Output.ModelDir, "tensorboard"))); err != nil {
		_ = r.lines.Close()
		return nil, fmt.Errorf("output.tensorboard: %w", err)
	}
	return r, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (r *reports) training(epoch int, step, examples int64, rep metrics.Report) error {
	return r.write(metricsLine{Kind: "train", Epoch: epoch, Step: step, Examples: examples, Report: rep})
}

func (r *reports) evaluation(epoch int, step int64, rep metrics.Report) error {
	return r.write(metricsLine{Kind: "eval", Epoch: epoch, Step: step, Report: rep})
}

func (r *reports) write(line metricsLine) error {
	if err := r.lines.Write(line); err != nil {
		return err
	}
	if r.events == nil {
		return nil
	}
	return r.events.Scalars(line.Step, line.Kind, line.Report)
}

// close flushes and closes; a second call does nothing.
func (r *reports) close() error {
	var errs []error
	if r.lines != nil {
		errs = append(errs, r.lines.Close())
	}
	if r.events != nil {
		errs = append(errs, r.events.Close())
	}
	r.lines, r.events = nil, nil
	return errors.Join(errs...)
}
