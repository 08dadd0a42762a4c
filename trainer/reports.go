package trainer

import (
	"errors"
	"fmt"
	"path/filepath"

	"aibox/configs"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
)

// Names of the reports in a model directory.
const (
	summaryName     = "summary.json"
	metricsName     = "metrics.jsonl"
	tensorBoardName = "tensorboard"
	quarantineName  = "quarantine.jsonl"
	// noTensorBoard as output.tensorboard switches event files off.
	noTensorBoard = "none"
)

// reportPaths says where a job's reports are once its model is committed.
func reportPaths(job *configs.Job) map[string]string {
	dir := job.Output.ModelDir
	paths := map[string]string{
		"model":      dir,
		"summary":    filepath.Join(dir, summaryName),
		"metrics":    or(job.Output.Metrics, filepath.Join(dir, metricsName)),
		"quarantine": filepath.Join(dir, quarantineName),
	}
	if job.Output.TensorBoard != noTensorBoard {
		paths["tensorboard"] = or(job.Output.TensorBoard, filepath.Join(dir, tensorBoardName))
	}
	return paths
}

// staged is where a report is written while the job runs: in the generation if its
// final place is the model directory, otherwise directly where the job file says.
func staged(w *modeldir.Writer, modelDir, path string) string {
	if filepath.Dir(filepath.Clean(path)) == filepath.Clean(modelDir) {
		return w.Report(filepath.Base(path))
	}
	return path
}

// reports writes metrics while a job runs: JSON lines and TensorBoard events.
type reports struct {
	lines  *metrics.JSONLWriter
	events *metrics.EventWriter // nil: switched off
}

// metricsLine is one line of the metrics file.
type metricsLine struct {
	Kind     string `json:"kind"` // train (online metrics since the line before) or eval
	Epoch    int    `json:"epoch"`
	Step     int64  `json:"step"`
	Examples int64  `json:"trained_examples,omitempty"`
	metrics.Report
}

func openReports(job *configs.Job, w *modeldir.Writer) (*reports, error) {
	r := new(reports)
	paths := reportPaths(job)
	var err error
	if r.lines, err = metrics.CreateJSONL(staged(w, job.Output.ModelDir, paths["metrics"])); err != nil {
		return nil, fmt.Errorf("output.metrics: %w", err)
	}
	if paths["tensorboard"] == "" {
		return r, nil
	}
	if r.events, err = metrics.CreateEvents(staged(w, job.Output.ModelDir, paths["tensorboard"])); err != nil {
		return nil, errors.Join(fmt.Errorf("output.tensorboard: %w", err), r.lines.Close())
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
