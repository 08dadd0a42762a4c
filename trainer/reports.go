package trainer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		"metrics":    cmp.Or(job.Output.Metrics, filepath.Join(dir, metricsName)),
		"quarantine": filepath.Join(dir, quarantineName),
	}
	if job.Output.TensorBoard != noTensorBoard {
		paths["tensorboard"] = cmp.Or(job.Output.TensorBoard, filepath.Join(dir, tensorBoardName))
	}
	return paths
}

// staged is where a report is written while the job runs: in the generation if its
// final place is the model directory, by whatever path, otherwise directly where the job file says.
func staged(w *modeldir.Writer, modelDir, path string) string {
	if modeldir.SameDir(filepath.Dir(filepath.Clean(path)), modelDir) {
		return w.Report(filepath.Base(path))
	}
	return path
}

// reports writes metrics while a job runs: JSON lines and TensorBoard events.
type reports struct {
	lines  *metrics.JSONLWriter
	events *metrics.EventWriter // nil: switched off
	lost   float64              // portion of lost samples
}

// metricsLine is one line of the metrics file.
type metricsLine struct {
	Kind     string `json:"kind"` // train (online metrics since the line before), validation or eval
	Epoch    int    `json:"epoch"`
	Step     int64  `json:"step"`
	Examples int64  `json:"trained_examples,omitempty"`
	// LostSamples is the portion of lost samples so far, with partial recovery.
	LostSamples float64 `json:"lost_samples,omitempty"`
	metrics.Report
}

// reportSizes says how far the reports are, and which event file it is.
type reportSizes struct {
	Metrics   int64  `json:"metrics"`
	EventFile string `json:"event_file,omitempty"`
	Events    int64  `json:"events,omitempty"`
}

// openReports opens the reports of a run. With at, it goes on with those of an
// interrupted run and cuts off what that run wrote later.
func openReports(job *configs.Job, w *modeldir.Writer, at *reportSizes) (*reports, error) {
	r := new(reports)
	paths := reportPaths(job)
	path := staged(w, job.Output.ModelDir, paths["metrics"])
	var err error
	if at != nil {
		if err := cut(path, at.Metrics); err != nil {
			return nil, fmt.Errorf("output.metrics: %w", err)
		}
	}
	if r.lines, err = metrics.CreateJSONL(path); err != nil {
		return nil, fmt.Errorf("output.metrics: %w", err)
	}
	if paths["tensorboard"] == "" {
		return r, nil
	}
	dir := staged(w, job.Output.ModelDir, paths["tensorboard"])
	err = fs.ErrNotExist
	if at != nil && at.EventFile != "" {
		r.events, err = metrics.OpenEvents(filepath.Join(dir, at.EventFile), at.Events)
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.events, err = metrics.CreateEvents(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("output.tensorboard: %w", err), r.lines.Close())
	}
	return r, nil
}

// cut cuts a file to its first size bytes. A file that is shorter, or does not exist, is
// left as it is.
func cut(path string, size int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= size {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// sizes says how far the reports are.
func (r *reports) sizes() (at reportSizes, err error) {
	if at.Metrics, err = r.lines.Size(); err != nil || r.events == nil {
		return at, err
	}
	at.EventFile = filepath.Base(r.events.Path())
	at.Events, err = r.events.Size()
	return at, err
}

// sync makes durable what was reported so far. It may run while reports are written.
func (r *reports) sync() error {
	errs := []error{r.lines.Sync()}
	if r.events != nil {
		errs = append(errs, r.events.Sync())
	}
	return errors.Join(errs...)
}

func (r *reports) training(epoch int, step, examples int64, rep metrics.Report) error {
	return r.write(metricsLine{Kind: "train", Epoch: epoch, Step: step, Examples: examples, Report: rep})
}

// evaluation reports an evaluation of the given kind.
func (r *reports) evaluation(kind string, epoch int, step int64, rep metrics.Report) error {
	return r.write(metricsLine{Kind: kind, Epoch: epoch, Step: step, Report: rep})
}

func (r *reports) write(line metricsLine) error {
	line.LostSamples = r.lost
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
