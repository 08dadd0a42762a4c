package runstate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"aibox/internal/errkind"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
)

// State is the state of an unfinished run: its progress, its measurements so far, and the best
// epoch. With the tensors of the engine's state and a snapshot of the table, it is everything that
// the rest of training depends on. It can be written and read back between any two passes. The
// engine, the reports and the reader are not part of it.
type State struct {
	Epoch    int            `json:"epoch"`    // the current epoch, from 1 on; 0 before the first
	Passes   int64          `json:"passes"`   // trained passes of this epoch
	Batches  int64          `json:"batches"`  // trained mini-batches of this epoch
	Spent    Spent          `json:"spent"`    // in this epoch, before the current process
	Examples int64          `json:"examples"` // trained in this run
	Engine   engine.State   `json:"engine"`
	Online   Online         `json:"online"`
	Stopping Stopping       `json:"stopping"`
	Last     *Kept          `json:"last,omitempty"` // the last epoch that has ended
	Best     *Kept          `json:"best,omitempty"` // with early stopping: the best epoch so far
	Epochs   []report.Epoch `json:"epochs,omitempty"`

	InitialBias *float64 `json:"initial_bias,omitempty"` // initial value of the output bias; nil if it is that of an earlier model
	Warnings    []string `json:"warnings,omitempty"`     // about the model to start from, the first look at the data, and the first examples of a warm start

	Recent *metrics.Report `json:"recent,omitempty"` // online, of the last line of metrics

	// Reader is the last known place of the reader in this epoch, after ReaderBatches mini-batches;
	// nil for the beginning.
	Reader        *reader.Cursor `json:"reader,omitempty"`
	ReaderBatches int64          `json:"reader_batches"`

	TrainRows report.Reading `json:"train_rows"` // of the first epoch, once it has ended
	EvalRows  report.Reading `json:"eval_rows"`
	// ValidationRows are the rows that data.validation_fraction holds out.
	ValidationRows report.Reading `json:"validation_rows,omitzero"`
	// Quarantine is the length of the quarantine file before the current reading of data, or after
	// the last one.
	Quarantine int64 `json:"quarantine"`
}

// Begin begins an epoch. quarantine is the current length of the quarantine file.
func (s *State) Begin(epoch int, quarantine int64) {
	s.Epoch, s.Passes, s.Batches, s.Spent, s.Online = epoch, 0, 0, Spent{}, NewOnline()
	s.Reader, s.ReaderBatches, s.Quarantine = nil, 0, quarantine
}

// QuarantineBytes returns a lower bound of the length of the quarantine file, to which it is
// truncated when another process resumes the run.
func (s *State) QuarantineBytes() int64 {
	size := s.Quarantine
	if s.Reader != nil && s.Epoch == 1 { // later epochs record no bad rows
		size += s.Reader.QuarantineBytes
	}
	return size
}

// Trained adds a trained pass.
func (s *State) Trained(p *reader.Pass) {
	s.Passes++
	s.Batches += int64(len(p.Batches))
	if p.End != nil {
		s.Reader, s.ReaderBatches = p.End, s.Batches
	}
}

// Training reports whether training is in the middle of an epoch.
func (s *State) Training(epoch int) bool { return s.Epoch == epoch && len(s.Epochs) < epoch }

// Ended reports whether an epoch is complete.
func (s *State) Ended(epoch int) bool { return s.Last != nil && s.Last.Epoch >= epoch }

// Before returns the number of examples trained before an epoch.
func (s *State) Before(epoch int) (n int64) {
	for _, e := range s.Epochs {
		if e.Epoch < epoch {
			n += e.Examples
		}
	}
	return n
}

// Kept is the state of training after an epoch. With early stopping the table
// snapshot and the dense file exist on disk.
type Kept struct {
	Epoch    int    `json:"epoch"`
	Step     int64  `json:"step"`
	Examples int64  `json:"examples"`
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// OfEpoch returns the summary of an epoch, an empty one if the epoch was not trained.
func (s *State) OfEpoch(epoch int) *report.Epoch {
	for i := range s.Epochs {
		if s.Epochs[i].Epoch == epoch {
			return &s.Epochs[i]
		}
	}
	return new(report.Epoch)
}

// Encode returns the state as JSON.
func (s *State) Encode() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("state of training: %w", err)
	}
	return data, nil
}

// Decode reads what Encode wrote. s must have the optimizer and fields of the encoded state. If
// data has something that this version does not know, the error is errkind.ErrNewer.
func (s *State) Decode(data []byte) error {
	read := State{Engine: engine.State{Dense: s.Engine.Dense, RowSteps: s.Engine.RowSteps}}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return fmt.Errorf("state of training: %w: %w", err, errkind.ErrNewer) // the saved data are intact
	}
	*s = read
	return nil
}

// AddEpoch adds a completed epoch, on which this process has spent took. stages are the
// measurements of this process.
func (s *State) AddEpoch(epoch int, rep metrics.Report, took Spent, stages []pipeline.StageStats) {
	took = s.Spent.Plus(took)
	s.Epochs = append(s.Epochs, report.Epoch{
		Epoch: epoch, Examples: rep.Examples, Seconds: took.Seconds, CPU: took.Processor, Online: rep, Stages: took.Stages, Measured: stages,
	})
	s.Spent, s.Reader, s.ReaderBatches = Spent{}, nil, 0
}
