package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
)

// Names of the reports in a model directory.
const (
	SummaryName     = "summary.json"
	MetricsName     = "metrics.jsonl"
	TensorBoardName = "tensorboard"
	QuarantineName  = "quarantine.jsonl"
	// noTensorBoard, as output.tensorboard, switches event files off.
	noTensorBoard = "none"
)

// Paths returns where a job's reports are once its model is committed.
func Paths(job *configs.Job) map[string]string {
	dir := job.Output.ModelDir
	paths := map[string]string{
		"model":      dir,
		"summary":    filepath.Join(dir, SummaryName),
		"metrics":    cmp.Or(job.Output.Metrics, filepath.Join(dir, MetricsName)),
		"quarantine": filepath.Join(dir, QuarantineName),
	}
	if job.Output.TensorBoard != noTensorBoard {
		paths["tensorboard"] = cmp.Or(job.Output.TensorBoard, filepath.Join(dir, TensorBoardName))
	}
	return paths
}

// Staged returns where a report is written while the job runs: in the generation if its final place
// is the model directory, by whatever path, and otherwise directly in its final place.
func Staged(w *modeldir.Writer, modelDir, path string) string {
	if disk.SameDir(filepath.Dir(filepath.Clean(path)), modelDir) {
		return w.Report(filepath.Base(path))
	}
	return path
}

// Writer writes metrics while a job runs: JSON lines and TensorBoard events.
type Writer struct {
	lines  *metrics.JSONLWriter
	events *metrics.EventWriter // nil if switched off
	Lost   float64              // portion of lost samples
}

// Line is one line of the metrics file.
type Line struct {
	Kind     string `json:"kind"` // train (online metrics since the line before), validation or eval
	Epoch    int    `json:"epoch"`
	Step     int64  `json:"step"`
	Examples int64  `json:"trained_examples"`
	// LostSamples is the portion of lost samples so far, with partial recovery.
	LostSamples float64 `json:"lost_samples,omitempty"`
	metrics.Report
}

// Sizes are the lengths of the reports, and the name of the event file.
type Sizes struct {
	Metrics   int64  `json:"metrics"`
	EventFile string `json:"event_file,omitempty"`
	Events    int64  `json:"events,omitempty"`
}

// OpenWriter opens the reports of a run. If at is not nil, it continues those of an interrupted
// run, truncated to at.
func OpenWriter(job *configs.Job, w *modeldir.Writer, at *Sizes) (*Writer, error) {
	r := new(Writer)
	paths := Paths(job)
	path := Staged(w, job.Output.ModelDir, paths["metrics"])
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
	dir := Staged(w, job.Output.ModelDir, paths["tensorboard"])
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

// cut truncates a file to its first size bytes. A shorter or missing file stays as it is.
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

// Sizes returns the current lengths of the reports.
func (r *Writer) Sizes() (at Sizes, err error) {
	if at.Metrics, err = r.lines.Size(); err != nil || r.events == nil {
		return at, err
	}
	at.EventFile = filepath.Base(r.events.Path())
	at.Events, err = r.events.Size()
	return at, err
}

// Sync makes everything reported so far durable. It may run while reports are written.
func (r *Writer) Sync() error {
	errs := []error{r.lines.Sync()}
	if r.events != nil {
		errs = append(errs, r.events.Sync())
	}
	return errors.Join(errs...)
}

// Metrics reports metrics of a kind after a step and the given number of examples.
func (r *Writer) Metrics(kind string, epoch int, step, examples int64, rep metrics.Report) error {
	line := Line{Kind: kind, Epoch: epoch, Step: step, Examples: examples, LostSamples: r.Lost, Report: rep}
	if err := r.lines.Write(line); err != nil {
		return err
	}
	if r.events == nil {
		return nil
	}
	return r.events.Scalars(step, kind, rep)
}

// Close flushes and closes; a second call does nothing.
func (r *Writer) Close() error {
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

// LinesOfOthers reports whether a metrics file outside the model directory has lines, after the
// first from bytes, that are not of the run whose snapshot is at the given step. The steps of one
// run never decrease. It also returns the length of the file.
func LinesOfOthers(path string, from, step int64) (others bool, size int64, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	size = int64(len(data))
	for line := range bytes.Lines(data[min(from, size):]) {
		var l Line
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the process was killed while it wrote the line
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Step < step {
			return true, size, nil
		}
		step = l.Step
	}
	return false, size, nil
}
