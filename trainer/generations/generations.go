package generations

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aibox/internal/errkind"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// Generation is what `aibox generations` prints about a generation of a model directory.
type Generation struct {
	Generation  int    `json:"generation"`
	State       State  `json:"state"`
	Night       string `json:"night,omitempty"` // the date of its job
	Day         uint32 `json:"day,omitempty"`
	DayFromDate bool   `json:"day_from_date"`
	SavedAt     string `json:"saved_at,omitempty"`     // in UTC; "" if an earlier version saved it
	StartedFrom string `json:"started_from,omitempty"` // the model that it was made from, as DIR@N; "" for a new one
	// StartedFromGone says that this model does not exist any more; another one may have its
	// number.
	StartedFromGone bool            `json:"started_from_gone,omitempty"`
	Steps           int64           `json:"steps"`
	Examples        int64           `json:"trained_examples"`
	Eval            *metrics.Report `json:"eval,omitempty"` // from its summary; without data.eval, on the held-out training data
	Digest          string          `json:"digest,omitempty"`
	Bytes           int64           `json:"bytes"` // size of its files, including the table
	Fault           string          `json:"fault,omitempty"`
	// Arriving is set if files of its table have not all arrived from a remote directory.
	Arriving *ArrivingFiles `json:"arriving,omitempty"`
}

// ArrivingFiles are files with missing bytes.
type ArrivingFiles struct {
	Remote       string `json:"remote"`
	LackingBytes int64  `json:"lacking_bytes"`     // of the files that are not known to be complete
	Damaged      string `json:"damaged,omitempty"` // why they never will be complete
}

// State is the role of a generation in its directory.
type State string

const (
	Published  State = "published"  // it is the model of the directory
	Kept       State = "kept"       // it is complete, and can be published
	Newer      State = "newer"      // made by a newer version of aibox, in a form that this one cannot read
	Damaged    State = "damaged"    // its manifest cannot be read
	Resumable  State = "resumable"  // it has a snapshot from which its run resumes after an interruption
	Unfinished State = "unfinished" // its run is still going, or ended without a model, and it has no snapshot

	// PriorityRows is not a model but rows of an interrupted run in snapshots.remote, which partial
	// recovery uses: see snapshots.priority.
	PriorityRows State = "rows"
)

// List describes the generations of the model directory dir, the newest first. The error is
// modeldir.ErrNoModel if there are neither models nor a run that can be resumed.
func List(dir string) ([]Generation, error) {
	all, none := modeldir.Generations(dir)
	if none != nil && !errors.Is(none, modeldir.ErrNoModel) {
		return nil, none
	}
	unfinished, err := modeldir.Unfinished(dir)
	if err != nil {
		return nil, err
	}
	if none != nil && !slices.ContainsFunc(unfinished, func(g modeldir.Incomplete) bool { return g.Resume != nil }) {
		if _, err := os.Stat(dir); err != nil {
			return nil, none
		}
		return nil, fmt.Errorf("%s: %w: it has neither a model that a job has made, nor one that was published to it", dir, modeldir.ErrNoModel)
	}
	var out []Generation
	arriving, parents := modeldir.Arriving(dir), make(modeldir.Parents)
	add := func(g Generation, name string) {
		var err error
		g.Arriving = arrivingOf(arriving, name)
		if g.Bytes, err = modeldir.Space(dir, name); errors.Is(err, fs.ErrNotExist) {
			if _, gone := os.Stat(filepath.Join(dir, name)); gone != nil {
				return // it was deleted meanwhile
			}
		}
		if err != nil && g.Fault == "" {
			g.Fault = err.Error()
		}
		out = append(out, g)
	}
	for _, g := range all {
		add(describe(dir, &g, parents), g.Name)
	}
	for _, g := range unfinished {
		add(describeUnfinished(dir, &g, parents), g.Name)
	}
	slices.SortFunc(out, func(a, b Generation) int { return b.Generation - a.Generation })
	return out, nil
}

// arrivingOf describes what is missing from the table of a generation.
func arrivingOf(tables []modeldir.ArrivingTable, gen string) *ArrivingFiles {
	i := slices.IndexFunc(tables, func(t modeldir.ArrivingTable) bool { return t.Generation == gen })
	if i < 0 {
		return nil
	}
	said, err := remote.AnnouncedIn(tables[i].Records...)
	switch {
	case err != nil:
		return &ArrivingFiles{Damaged: err.Error()}
	case said == nil: // the files have arrived meanwhile
		return nil
	}
	return &ArrivingFiles{said.URI, said.LackingBytes, said.Damaged}
}

// describe describes a complete generation.
func describe(dir string, g *modeldir.Generation, parents modeldir.Parents) Generation {
	d := Generation{Generation: g.Number, State: Kept}
	switch {
	case g.Fault != nil:
		d.State, d.Fault = Damaged, g.Fault.Error()
		if errors.Is(g.Fault, errkind.ErrNewer) {
			d.State = Newer
		}
		return d
	case g.Published:
		d.State = Published
	}
	m := &g.Manifest
	d.Night, d.Day, d.DayFromDate, d.SavedAt = m.OfNight(), m.Day, m.DayFromDate, m.SavedAt
	d.Steps, d.Examples, d.Digest = m.Step, m.Examples, m.Digest
	d.StartedFrom, d.StartedFromGone = startOf(dir, m, parents)
	// The summary is a report, which may be missing.
	if data, err := os.ReadFile(modeldir.ReportOf(dir, g.Name, report.SummaryName)); err == nil {
		var s report.Summary
		if json.Unmarshal(data, &s) == nil {
			if d.Eval = s.Eval; d.Eval == nil {
				d.Eval = s.Validation
			}
		}
	}
	return d
}

// describeUnfinished describes a generation that is not complete.
func describeUnfinished(dir string, g *modeldir.Incomplete, parents modeldir.Parents) Generation {
	m := modeldir.Manifest{Generation: g.Name}
	d := Generation{Generation: m.Number(), State: Unfinished}
	if g.Fault != nil {
		d.Fault = g.Fault.Error()
	}
	if g.Resume == nil {
		return d
	}
	x, id, err := runstate.Decode(g.Resume)
	if err != nil { // another version of aibox wrote it, so the next run deletes it
		return d
	}
	at := x.Place()
	d.State, d.Night, d.Day, d.DayFromDate, d.Steps, d.Examples = Resumable, id.Night, x.Day, id.Night != "", at.Step, at.Examples
	if id.Start != nil {
		d.StartedFrom, d.StartedFromGone = startOf(dir, &modeldir.Manifest{StartedFrom: id.Start.Origin, Step: at.Step}, parents)
	}
	return d
}

// startOf names the model from which child, which is in dir, was made, as DIR@N: where it is or, if
// it is gone, where it was.
func startOf(dir string, child *modeldir.Manifest, parents modeldir.Parents) (name string, gone bool) {
	if child.StartedFrom == (modeldir.Origin{}) {
		return "", false
	}
	if at, from, ok := parents.Of(dir, child); ok {
		return modeldir.JoinName(at, from.Number), false
	}
	return child.StartedFrom.Name(dir), true
}
