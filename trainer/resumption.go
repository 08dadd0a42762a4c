package trainer

import (
	"encoding/json"
	"fmt"
	"time"

	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// resumeFormat is the version of what RESUME.json says, and of how the reader cuts its input
// into units. A run does not go on from another; it does go on from that of another version
// of aibox if that writes this number or one from oldestResume on.
const (
	resumeFormat = 2
	oldestResume = 1 // histograms bin by bin
)

// resumption is what a process needs to go on with a run. It refers to a snapshot of the
// table and a dense file of the same instant.
type resumption struct {
	Format  int             `json:"format"`
	Version string          `json:"aibox_version"`
	Run     json.RawMessage `json:"run"` // identity: what must be the same
	Day     uint32          `json:"day"`

	Step      int64               `json:"step"`
	State     json.RawMessage     `json:"state"`            // without the two that follow
	Online    online              `json:"online"`           // of State
	Reader    *reader.Cursor      `json:"reader,omitempty"` // of State
	Snapshot  uint64              `json:"snapshot"`
	Reports   reportSizes         `json:"reports"`
	Seconds   float64             `json:"seconds"` // that the run has taken so far
	Snapshots report.Snapshots    `json:"snapshots"`
	Resumed   []report.Resumption `json:"resumed,omitempty"`
	Final     *final              `json:"final,omitempty"` // set when nothing but the commit is left

	Recoveries []report.Recovery `json:"recoveries,omitempty"`

	best *kept // of State
}

// final is a trained model whose files are complete, but which is not committed.
type final struct {
	Manifest *modeldir.Manifest `json:"manifest"`
	Table    sparsetable.Stats  `json:"table"`
	Expired  int64              `json:"expired"`
}

// identity is what has to be the same in a process that goes on with a run.
type identity struct {
	Job        string             `json:"job"`             // the effective job file
	Night      string             `json:"night,omitempty"` // the job's date, as in the manifest of its model
	Start      *chain.Start       `json:"started_from,omitempty"`
	Train      *source.Listing    `json:"train"`
	Eval       *source.Listing    `json:"eval,omitempty"`
	Statistics *reader.Statistics `json:"statistics"` // this and the next are computed by the run that began, and not compared
	Split      *reader.Split      `json:"split,omitempty"`
}

// decodeResumption decodes what an interrupted run left. With an error, which says that
// another version of aibox wrote it, the result has what could be decoded.
func decodeResumption(data []byte) (*resumption, *identity, error) {
	x, id := new(resumption), new(identity)
	err := json.Unmarshal(data, x)
	if err == nil && (x.Format < oldestResume || x.Format > resumeFormat) {
		err = fmt.Errorf("it has format %d, this version reads %d to %d", x.Format, oldestResume, resumeFormat)
	}
	if err == nil {
		err = json.Unmarshal(x.Run, id)
	}
	return x, id, err
}

func (x *resumption) tableRecord() []byte {
	m := modeldir.Manifest{Step: x.Step, Dense: modeldir.DenseName(x.Step)}
	return m.TableRecord()
}

// snapshots are the table's snapshots that x refers to.
func (x *resumption) snapshots() []uint64 {
	ids := []uint64{x.Snapshot}
	if x.best != nil {
		ids = append(ids, x.best.Snapshot)
	}
	return ids
}

// dense are the dense files that x refers to.
func (x *resumption) dense() []string {
	names := []string{modeldir.DenseName(x.Step)}
	if x.best != nil {
		names = append(names, modeldir.DenseName(x.best.Step))
	}
	return names
}

// place is where x goes on.
func (x *resumption) place() report.Resumption {
	p := x.progress()
	return report.Resumption{Time: time.Now().UTC().Truncate(time.Second), Epoch: p.Epoch, Step: x.Step, Examples: p.Examples}
}

// same reports whether x has this state.
func (x *resumption) same(s *State) bool {
	var mine struct {
		Epoch   int               `json:"epoch"`
		Batches int64             `json:"batches"`
		Last    *kept             `json:"last"`
		Epochs  []json.RawMessage `json:"epochs"`
	}
	if err := json.Unmarshal(x.State, &mine); err != nil {
		return false
	}
	return mine.Epoch == s.Epoch && mine.Batches == s.Batches && len(mine.Epochs) == len(s.Epochs) && (mine.Last == nil) == (s.Last == nil) &&
		(s.Last == nil || mine.Last.Epoch == s.Last.Epoch)
}
