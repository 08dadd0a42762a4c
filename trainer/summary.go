package trainer

import (
	"encoding/json"
	"runtime"
	"time"

	"aibox/configs"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/forecast"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// Summary is what a job reports at its end, and the contents of summary.json. The
// summary of a run that made no model says why, and how far it came; it has neither a
// digest nor a kept epoch, and its file is summary-failed.json.
type Summary struct {
	Name            string            `json:"name,omitempty"`
	Version         string            `json:"aibox_version"`
	ModelKind       string            `json:"model_kind"`
	ModelDir        string            `json:"model_dir"`
	Failure         *Failure          `json:"failure,omitempty"`
	Digest          string            `json:"digest,omitempty"` // empty for a table on SSD: see modeldir.Manifest
	Seed            uint64            `json:"seed"`
	WarmStart       string            `json:"warm_start,omitempty"`   // the model that it started from
	InitialBias     *float64          `json:"initial_bias,omitempty"` // of the output; none if it is that of an earlier model
	KeptEpoch       int               `json:"kept_epoch"`
	Steps           int64             `json:"steps"`
	Examples        int64             `json:"trained_examples"`
	TrainRows       ReadingSummary    `json:"train_rows"` // of one reading
	EvalRows        ReadingSummary    `json:"eval_rows"`  // of one reading
	Epochs          []EpochSummary    `json:"epochs"`
	ValidationRows  ReadingSummary    `json:"validation_rows,omitzero"`
	Validation      *metrics.Report   `json:"validation,omitempty"` // of the kept epoch, on the part of the training data that is held out
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
	Devices         []DeviceSummary   `json:"devices,omitempty"`      // of engine.kind: cuda
	Snapshots       SnapshotSummary   `json:"snapshots"`              // taken while training
	Resumed         []Resumption      `json:"resumed,omitempty"`      // where the run went on after interruptions
	Recoveries      []Recovery        `json:"recoveries,omitempty"`   // how it went on after losses of directories
	LostSamples     float64           `json:"lost_samples,omitempty"` // portion of lost samples of all recoveries
	Arrival         *Arrival          `json:"arrival,omitempty"`      // of a table from snapshots.remote
	Warnings        []string          `json:"warnings,omitempty"`     // what may make the model worse than it could be
	Files           map[string]string `json:"files"`

	// What became of its publication is in remote.json, since summary.json is published.
	Published    *remote.Published `json:"-"` // nil: it was not, or not to be
	Already      string            `json:"-"` // the model that was there, so that nothing was trained; "": it was not
	NotPublished string            `json:"-"` // why it could not be published; "": it is, or was not to be
	generation   int
}

// ReadingSummary counts the input rows of one reading of the data.
type ReadingSummary struct {
	Good        int64            `json:"good"`
	Bad         int64            `json:"bad"`
	BadByReason map[string]int64 `json:"bad_by_reason,omitempty"`
	Dropped     int64            `json:"dropped_by_sampling"`
	LostBytes   int64            `json:"lost_bytes"`
	LostRows    int64            `json:"lost_rows"`      // known or estimated, not in the counts above
	Lost        []reader.Loss    `json:"lost,omitempty"` // by file
}

// EpochSummary is one reading of the training data.
type EpochSummary struct {
	Epoch    int             `json:"epoch"`
	Examples int64           `json:"examples"`
	Seconds  float64         `json:"seconds"`
	CPU      float64         `json:"processor_seconds"` // of all cores
	Online   metrics.Report  `json:"online"`
	Eval     *metrics.Report `json:"eval,omitempty"`
	// Validation is measured on the part of the training data that is held out.
	Validation *metrics.Report `json:"validation,omitempty"`
	Stages     []StageSummary  `json:"stages"`

	stages []pipeline.StageStats
}

// StageSummary describes one stage of the pipeline, like a line of the paper's Table 1.
type StageSummary struct {
	Name           string  `json:"name"`
	Items          int64   `json:"passes"`
	BusySeconds    float64 `json:"busy_seconds"`
	StarvedSeconds float64 `json:"starved_seconds"`
	BlockedSeconds float64 `json:"blocked_seconds"`

	// These describe the queue in front of the stage; the first stage has none.
	QueueMean     float64 `json:"queue_mean_length,omitempty"` // over time
	QueueCapacity int     `json:"queue_capacity,omitempty"`
}

// Names of the data that are not trained on.
const (
	evalData       = "data.eval"
	validationData = "the end of data.train"
)

// decisive is the report by which epochs are compared, and the name of its data; nil: there
// is none.
func (e *EpochSummary) decisive() (where string, report *metrics.Report) {
	if e.Validation != nil {
		return validationData, e.Validation
	}
	return evalData, e.Eval
}

// busy is the share of the cores' time that the process used.
func (e *EpochSummary) busy() float64 {
	return e.CPU / (e.Seconds * float64(runtime.GOMAXPROCS(0)))
}

// stats are the stages' measurements that say which one bounded the epoch.
func (e *EpochSummary) stats() (stages []pipeline.StageStats) {
	for _, st := range e.Stages {
		stages = append(stages, pipeline.StageStats{Name: st.Name, Items: st.Items, Busy: time.Duration(st.BusySeconds * float64(time.Second))})
	}
	return stages
}

func readingSummary(c reader.Counts) ReadingSummary {
	s := ReadingSummary{
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

// addEpoch adds an epoch that has ended, which took so much. stages are those of the
// present process.
func (s *State) addEpoch(epoch int, rep metrics.Report, took spent, stages []pipeline.StageStats) {
	took = s.Spent.plus(took)
	s.Epochs = append(s.Epochs, EpochSummary{
		Epoch: epoch, Examples: rep.Examples, Seconds: took.Seconds, CPU: took.Processor, Online: rep, Stages: took.Stages, stages: stages,
	})
	s.Spent, s.Reader, s.ReaderBatches = spent{}, nil, 0
}

// describe fills in the fields that are known at any time of a run.
func (s *Summary) describe(r *run) {
	s.Name, s.Version, s.Seed = r.job.Name, r.opts.Version, r.job.Seed
	s.ModelKind, s.ModelDir, s.WarmStart = r.job.Model.Kind, r.job.Output.ModelDir, r.job.Training.WarmStart
	if s.WarmStart == configs.WarmStartLatest {
		s.WarmStart = ""
		if r.start != nil {
			s.WarmStart = r.start.Name
		}
	}
	s.Precision = r.job.Engine.Precision
	s.InitialBias, s.Warnings = r.state.InitialBias, r.state.Warnings
	s.Examples, s.Epochs = r.state.Examples, r.state.Epochs
	s.TrainRows, s.EvalRows, s.ValidationRows = r.state.TrainRows, r.state.EvalRows, r.state.ValidationRows
	s.Snapshots, s.Resumed, s.Recoveries = r.snapshots.summary, r.resumed, r.recoveries
	s.LostSamples = lostSamples(r.recoveries)
	s.Snapshots.Remote, s.Snapshots.Priority, s.Arrival = r.snapshots.uploads.summary(), r.snapshots.uploads.prioritySummary(), r.arrival()
	if n := len(s.Epochs); n > 0 {
		last := &s.Epochs[n-1]
		s.Limiting = pipeline.Limiting(last.stats())
		s.Bound = bound(r.job, last.stats(), last.busy(), len(r.data.train.Files))
	}
	s.ElapsedSeconds = r.elapsed()
	training := 0.0 // seconds
	for _, e := range s.Epochs {
		training += e.Seconds
	}
	if training > 0 {
		s.ExamplesPerSec = float64(s.Examples) / training
	}
	s.PeakMemoryBytes = processMemory().Peak
	s.Devices = deviceSummaries(r.engine)
}

// complete fills in the fields that are known when the model is about to be committed.
func (s *Summary) complete(r *run, m *modeldir.Manifest, table sparsetable.Stats, expired int64) {
	s.describe(r)
	s.generation = r.models.writer.Number()
	s.Digest, s.KeptEpoch, s.Steps = m.Digest, m.Epoch, m.Step
	s.Table, s.ExpiredRows = table, expired
	s.Memory = r.memory(table)
	for _, p := range r.model.Params() {
		s.DenseParameters += int64(len(p.Data))
	}
	e := r.state.epoch(m.Epoch)
	s.Eval, s.Validation = e.Eval, e.Validation
	s.Warnings = warnings(r)
	s.Files = reportPaths(r.job)
}

// StageTable is the stage table of the last epoch as text; empty when the
// summary was read back from a file.
func (s *Summary) StageTable() string {
	if n := len(s.Epochs); n > 0 && s.Epochs[n-1].stages != nil {
		return pipeline.Table(s.Epochs[n-1].stages)
	}
	return ""
}

func (s *Summary) write(path string) error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	return modeldir.WriteFile(path, data)
}

func (s *Summary) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
