package runstate

import (
	"encoding/json"
	"fmt"
	"time"

	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// RecordFormat is the version of the contents of RESUME.json, and of how the reader divides its
// input into units. A run can be resumed from a record of another version of aibox if its format is
// from oldestResume to this one.
const (
	RecordFormat = 2
	oldestResume = 1 // has histograms bin by bin
)

// Record is what a process needs to resume a run. It refers to a snapshot of the table and a dense
// file of the same instant.
type Record struct {
	Format  int             `json:"format"`
	Version string          `json:"aibox_version"`
	Run     json.RawMessage `json:"run"` // an Identity, which must be the same
	Day     uint32          `json:"day"`

	// Converted says that rows of the earlier model were converted, so that they cannot replace
	// rows of this run.
	Converted bool `json:"converted,omitempty"`

	Step      int64               `json:"step"`
	State     json.RawMessage     `json:"state"`            // without the next two fields
	Online    Online              `json:"online"`           // of State
	Reader    *reader.Cursor      `json:"reader,omitempty"` // of State
	Snapshot  uint64              `json:"snapshot"`
	Reports   report.Sizes        `json:"reports"`
	Seconds   float64             `json:"seconds"` // time that the run has taken so far
	Snapshots report.Snapshots    `json:"snapshots"`
	Resumed   []report.Resumption `json:"resumed,omitempty"`
	Final     *Final              `json:"final,omitempty"` // set when only the commit is left

	Recoveries []report.Recovery `json:"recoveries,omitempty"`

	Best *Kept `json:"-"` // of State
}

// Final is a trained model whose files are complete but which is not committed yet.
type Final struct {
	Manifest *modeldir.Manifest `json:"manifest"`
	Table    sparsetable.Stats  `json:"table"`
	Expired  int64              `json:"expired"`
}

// Decode decodes what an interrupted run left. An error says that another version of aibox wrote
// it; then the result has what could be decoded.
func Decode(data []byte) (*Record, *Identity, error) {
	x, id := new(Record), new(Identity)
	err := json.Unmarshal(data, x)
	if err == nil && (x.Format < oldestResume || x.Format > RecordFormat) {
		err = fmt.Errorf("it has format %d, and this program reads %d to %d", x.Format, oldestResume, RecordFormat)
	}
	if err == nil {
		err = json.Unmarshal(x.Run, id)
	}
	return x, id, err
}

// TableRecord returns the record of the table's snapshot.
func (x *Record) TableRecord() []byte {
	m := modeldir.Manifest{Step: x.Step, Dense: modeldir.DenseName(x.Step)}
	return m.TableRecord()
}

// TableSnapshots returns the table's snapshots that x refers to.
func (x *Record) TableSnapshots() []uint64 {
	ids := []uint64{x.Snapshot}
	if x.Best != nil {
		ids = append(ids, x.Best.Snapshot)
	}
	return ids
}

// DenseFiles returns the dense files that x refers to.
func (x *Record) DenseFiles() []string {
	names := []string{modeldir.DenseName(x.Step)}
	if x.Best != nil {
		names = append(names, modeldir.DenseName(x.Best.Step))
	}
	return names
}

// Place returns where x resumes.
func (x *Record) Place() report.Resumption {
	p := x.Progress()
	return report.Resumption{Time: time.Now().UTC().Truncate(time.Second), Epoch: p.Epoch, Step: x.Step, Examples: p.Examples, AiboxVersion: x.Version}
}

// Uploaded reports whether a snapshot up to x was uploaded to snapshots.remote.
func (x *Record) Uploaded() bool { return x.Snapshots.Remote != nil && x.Snapshots.Remote.Step > 0 }

// Same reports whether x has the given state.
func (x *Record) Same(s *State) bool {
	var mine struct {
		Epoch   int               `json:"epoch"`
		Batches int64             `json:"batches"`
		Last    *Kept             `json:"last"`
		Epochs  []json.RawMessage `json:"epochs"`
	}
	if err := json.Unmarshal(x.State, &mine); err != nil {
		return false
	}
	return mine.Epoch == s.Epoch && mine.Batches == s.Batches && len(mine.Epochs) == len(s.Epochs) && (mine.Last == nil) == (s.Last == nil) &&
		(s.Last == nil || mine.Last.Epoch == s.Last.Epoch)
}

// Progress is the progress of a run at a snapshot.
type Progress struct {
	Epoch    int            `json:"epoch"`
	Examples int64          `json:"examples"`
	Best     *Kept          `json:"best"`
	Epochs   []report.Epoch `json:"epochs"`
}

// Progress returns the progress of the run at x.
func (x *Record) Progress() (p Progress) {
	_ = json.Unmarshal(x.State, &p) // it was decoded before, or written by this process
	return p
}

// TotalExamples returns S_total as far as it is known at x: the examples of all epochs. The first
// epoch, or what was read of it, tells how many examples an epoch has. Before that is known, no
// further examples are assumed, so that the portion of lost samples is not underestimated.
func (x *Record) TotalExamples(job *configs.Job) int64 {
	p := x.Progress()
	each := p.Examples
	switch c := x.Reader; {
	case len(p.Epochs) > 0:
		each = p.Epochs[0].Examples
	case c != nil && c.Counts.BytesRead > 0 && c.Counts.Examples > 0:
		all := float64(c.Counts.Examples) * float64(c.Counts.BytesTotal) / float64(c.Counts.BytesRead)
		if limit := float64(job.Data.Limit); limit > 0 {
			all = min(all, limit)
		}
		each = int64(all * (1 - job.Data.ValidationFraction)) // the bytes include held-out data
	}
	total := each * int64(job.Training.Epochs)
	if most := job.Training.MaxExamples; most > 0 {
		total = min(total, most)
	}
	return max(total, p.Examples, 1)
}

// Refilled makes x refer to the snapshot of a refilled table, and also the best epoch if there is
// one, which is of the same instant.
func (x *Record) Refilled(snapshot uint64) error {
	x.Snapshot = snapshot
	best := x.Progress().Best
	if best == nil {
		return nil
	}
	best.Snapshot = snapshot
	var state map[string]json.RawMessage
	err := json.Unmarshal(x.State, &state)
	if err == nil {
		state["best"], err = json.Marshal(best)
	}
	if err == nil {
		x.State, err = json.Marshal(state)
	}
	return err
}
