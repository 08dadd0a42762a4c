package report

import (
	"encoding/json"
	"time"

	"aibox/internal/cores"
	"aibox/internal/disk"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/forecast"
	"aibox/trainer/metrics"
	"aibox/trainer/mirror"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// Summary is what a job reports at its end, and the contents of summary.json. The summary of a run
// that made no model says why, and how far it got. It has neither a digest nor a kept epoch, and
// its file is summary-failed.json.
type Summary struct {
	Name            string            `json:"name,omitempty"`
	Version         string            `json:"aibox_version"`
	ModelKind       string            `json:"model_kind"`
	ModelDir        string            `json:"model_dir"`
	Failure         *Failure          `json:"failure,omitempty"`
	Digest          string            `json:"digest,omitempty"` // empty for a table on SSD: see modeldir.Manifest
	Seed            uint64            `json:"seed"`
	WarmStart       string            `json:"warm_start,omitempty"`   // the model that it started from
	InitialBias     *float64          `json:"initial_bias,omitempty"` // of the output; nil if it is that of an earlier model
	KeptEpoch       int               `json:"kept_epoch"`
	Steps           int64             `json:"steps"`
	Examples        int64             `json:"trained_examples"`
	TrainRows       Reading           `json:"train_rows"` // of one reading
	EvalRows        Reading           `json:"eval_rows"`  // of one reading
	Epochs          []Epoch           `json:"epochs"`
	ValidationRows  Reading           `json:"validation_rows,omitzero"`
	Validation      *metrics.Report   `json:"validation,omitempty"` // of the kept epoch, on the held-out part of the training data
	Eval            *metrics.Report   `json:"eval,omitempty"`       // of the kept epoch
	DenseParameters int64             `json:"dense_parameters"`
	Precision       string            `json:"precision"` // of matrix products
	Table           sparsetable.Stats `json:"table"`
	ExpiredRows     int64             `json:"expired_rows"`
	Limiting        string            `json:"limiting_stage"`  // the stage that limited the speed of the last epoch
	Bound           string            `json:"bound,omitempty"` // the same in words, and which setting to change
	ElapsedSeconds  float64           `json:"elapsed_seconds"`
	ExamplesPerSec  float64           `json:"training_examples_per_second"`
	PeakMemoryBytes int64             `json:"peak_memory_bytes"`
	Memory          forecast.Memory   `json:"memory"`
	Devices         []Device          `json:"devices,omitempty"`      // of engine.kind: cuda
	Snapshots       Snapshots         `json:"snapshots"`              // taken while training
	Resumed         []Resumption      `json:"resumed,omitempty"`      // where the run was resumed after interruptions
	Recoveries      []Recovery        `json:"recoveries,omitempty"`   // how it recovered from losses of directories
	LostSamples     float64           `json:"lost_samples,omitempty"` // portion of lost samples of all recoveries
	Arrival         *Arrival          `json:"arrival,omitempty"`      // of a table from snapshots.remote
	Warnings        []string          `json:"warnings,omitempty"`     // what may make the model worse than it could be
	Files           map[string]string `json:"files"`

	// LeftOut are the entries of sparse_table.dirs that the run left out, since their disks have
	// failed, are read-only or are not mounted.
	LeftOut []modeldir.LostDir `json:"left_out_directories,omitempty"`

	// The result of publishing is in remote.json, since summary.json itself is published.
	Published    *remote.Published `json:"-"` // nil if it was not published, or not to be
	Already      string            `json:"-"` // the model that existed already, so that nothing was trained; "" if there was none
	NotPublished string            `json:"-"` // why it could not be published; "" if it is, or was not to be
	Generation   int               `json:"-"` // its number in the model directory; 0 if no model was made
}

// Reading counts the input rows of one reading of the data.
type Reading struct {
	Good        int64            `json:"good"`
	Bad         int64            `json:"bad"`
	BadByReason map[string]int64 `json:"bad_by_reason,omitempty"`
	Dropped     int64            `json:"dropped_by_sampling"`
	LostBytes   int64            `json:"lost_bytes"`
	LostRows    int64            `json:"lost_rows"`      // known or estimated, not in the counts above
	Lost        []reader.Loss    `json:"lost,omitempty"` // by file
}

// Epoch is one reading of the training data.
type Epoch struct {
	Epoch    int             `json:"epoch"`
	Examples int64           `json:"examples"`
	Seconds  float64         `json:"seconds"`
	CPU      float64         `json:"processor_seconds"` // of all cores
	Online   metrics.Report  `json:"online"`
	Eval     *metrics.Report `json:"eval,omitempty"`
	// Validation is measured on the held-out part of the training data.
	Validation *metrics.Report `json:"validation,omitempty"`
	Stages     []Stage         `json:"stages"`

	// Measured are the measurements of the stages in this process; nil if the summary was read from
	// a file.
	Measured []pipeline.StageStats `json:"-"`
}

// Names of the data that are not trained on.
const (
	EvalData       = "data.eval"
	ValidationData = "the end of data.train"
)

// Decisive returns the report by which epochs are compared, and the name of its data; nil if there
// is none.
func (e *Epoch) Decisive() (where string, report *metrics.Report) {
	if e.Validation != nil {
		return ValidationData, e.Validation
	}
	return EvalData, e.Eval
}

// Busy returns the share of the cores' time that the process used.
func (e *Epoch) Busy() float64 {
	return e.CPU / (e.Seconds * float64(cores.Count()))
}

// StageStats returns the measurements of the stages that tell which one bounded the epoch.
func (e *Epoch) StageStats() (stages []pipeline.StageStats) {
	for _, st := range e.Stages {
		stages = append(stages, pipeline.StageStats{Name: st.Name, Items: st.Items, Busy: time.Duration(st.BusySeconds * float64(time.Second))})
	}
	return stages
}

// ReadingOf returns the counts of a reader.
func ReadingOf(c reader.Counts) Reading {
	s := Reading{
		Good: c.Rows - c.BadRows, Bad: c.BadRows, Dropped: c.Dropped, LostBytes: c.LostBytes, LostRows: c.LostRows, Lost: c.Lost,
	}
	for _, r := range c.Bad {
		if s.BadByReason == nil {
			s.BadByReason = make(map[string]int64)
		}
		s.BadByReason[r.Reason.String()] = r.Rows
	}
	return s
}

// StageTable returns the stage table of the last epoch as text; empty if the summary was read from
// a file.
func (s *Summary) StageTable() string {
	if n := len(s.Epochs); n > 0 && s.Epochs[n-1].Measured != nil {
		return pipeline.Table(s.Epochs[n-1].Measured)
	}
	return ""
}

// Write writes the summary to a file, which appears when it is complete.
func (s *Summary) Write(path string) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(path, data)
}

// Encode returns the contents of the file.
func (s *Summary) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// Arrival is the cost of resuming from a snapshot of snapshots.remote, or of starting from a model
// of output.remote.
type Arrival struct {
	Remote        string  `json:"remote"`
	Bytes         int64   `json:"bytes"`          // of the snapshot or model; if an earlier process had begun, of what was missing
	FetchedBytes  int64   `json:"fetched_bytes"`  // of these, fetched by this process
	FetchedAgain  int     `json:"fetched_again"`  // parts that were damaged at first
	UsableSeconds float64 `json:"usable_seconds"` // until training could begin
	// WholeSeconds is the time until everything had arrived and was verified, during training; 0 if
	// the run ended before.
	WholeSeconds float64 `json:"whole_seconds"`
}

// Failure is the part of a summary that says why the run made no model.
type Failure struct {
	Kind     string    `json:"kind"` // a name of package errkind, such as "lost_data"
	Message  string    `json:"message"`
	ExitCode int       `json:"exit_code"`
	Phase    Phase     `json:"phase"`           // what the run was doing
	Epoch    int       `json:"epoch,omitempty"` // the current epoch; 0 if there was none
	Time     time.Time `json:"time"`
	// Resume is where the job resumes when it is started again; nil if it starts over.
	Resume *Resumption `json:"resume,omitempty"`
}

// Resumption says where a run resumed after an interruption.
type Resumption struct {
	Time     time.Time `json:"time"`
	Epoch    int       `json:"epoch"`
	Step     int64     `json:"step"`
	Examples int64     `json:"trained_examples"`

	AiboxVersion string `json:"aibox_version,omitempty"` // of the process that saved the snapshot
}

// Snapshots is the cost of the snapshots of a run.
type Snapshots struct {
	Taken        int64   `json:"taken"`
	Failed       int64   `json:"failed"`
	StallSeconds float64 `json:"stall_seconds"` // for which training waited
	WriteSeconds float64 `json:"write_seconds"` // in the background
	Bytes        int64   `json:"bytes"`

	Remote   *mirror.Summary `json:"remote,omitempty"`   // what has happened to them in snapshots.remote
	Priority *mirror.Summary `json:"priority,omitempty"` // what has happened to the priority saves between them
}
