package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// resumeFormat is the version of what RESUME.json says, and of how the reader cuts its input
// into units. A run does not go on from another; it does go on from that of another version
// of aibox if this number is the same.
const resumeFormat = 1

// resumption is what a process needs to go on with a run. It refers to a snapshot of the
// table and a dense file of the same instant.
type resumption struct {
	Format  int             `json:"format"`
	Version string          `json:"aibox_version"`
	Run     json.RawMessage `json:"run"` // identity: what must be the same
	Day     uint32          `json:"day"`

	Step      int64           `json:"step"`
	State     json.RawMessage `json:"state"`            // without the two that follow
	Online    online          `json:"online"`           // of State
	Reader    *reader.Cursor  `json:"reader,omitempty"` // of State
	Snapshot  uint64          `json:"snapshot"`
	Reports   reportSizes     `json:"reports"`
	Seconds   float64         `json:"seconds"` // that the run has taken so far
	Snapshots SnapshotSummary `json:"snapshots"`
	Resumed   []Resumption    `json:"resumed,omitempty"`
	Final     *final          `json:"final,omitempty"` // set when nothing but the commit is left

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
	Start      *start             `json:"started_from,omitempty"`
	Train      *source.Listing    `json:"train"`
	Eval       *source.Listing    `json:"eval,omitempty"`
	Statistics *reader.Statistics `json:"statistics"` // computed by the run that began; not compared
}

// decodeResumption decodes what an interrupted run left. With an error, which says that
// another version of aibox wrote it, the result has what could be decoded.
func decodeResumption(data []byte) (*resumption, *identity, error) {
	x, id := new(resumption), new(identity)
	err := json.Unmarshal(data, x)
	if err == nil && x.Format != resumeFormat {
		err = fmt.Errorf("it has format %d, this version writes %d", x.Format, resumeFormat)
	}
	if err == nil {
		err = json.Unmarshal(x.Run, id)
	}
	return x, id, err
}

// Resumption says from where a run went on after an interruption.
type Resumption struct {
	Time     time.Time `json:"time"`
	Epoch    int       `json:"epoch"`
	Step     int64     `json:"step"`
	Examples int64     `json:"trained_examples"`
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
func (x *resumption) place() Resumption {
	var s struct{ Epoch, Examples int64 }
	_ = json.Unmarshal(x.State, &s) // it was written by this process, or read before
	return Resumption{Time: time.Now().UTC().Truncate(time.Second), Epoch: int(s.Epoch), Step: x.Step, Examples: s.Examples}
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

// identify describes the run for its snapshots.
func (r *run) identify() error {
	var job bytes.Buffer
	if err := r.job.Show(&job); err != nil {
		return err
	}
	id := identity{Job: job.String(), Night: r.job.Night(), Start: r.start, Train: r.data.train, Eval: r.data.eval, Statistics: r.data.statistics}
	var err error
	r.identity, err = json.Marshal(id)
	return err
}

// interrupted returns what an interrupted run left, if this run can go on with it. If it
// cannot, the log says why, and the result is nil.
func (r *run) interrupted() (data []byte, x *resumption, id *identity, err error) {
	data, err = modeldir.Interrupted(r.job.Output.ModelDir)
	var damage *modeldir.CorruptionError
	switch {
	case errors.As(err, &damage):
		r.log.Warn("the snapshot of an interrupted run is damaged; training starts over", "error", err)
		return nil, nil, nil, nil
	case err != nil || data == nil:
		return nil, nil, nil, err
	}
	if r.opts.Fresh {
		r.log.Info("training starts over, as --fresh says; the snapshot of an interrupted run is deleted")
		return nil, nil, nil, nil
	}
	if !r.snapshots.on() {
		r.log.Warn("snapshots.every is none: training starts over, and the snapshot of an interrupted run is deleted")
		return nil, nil, nil, nil
	}
	if x, id, err = decodeResumption(data); err != nil {
		r.log.Warn("the snapshot of an interrupted run has the format of another version of aibox; training starts over", "version", x.Version, "error", err)
		return nil, nil, nil, nil
	}
	reasons, err := r.differences(id)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(reasons) > 0 {
		r.log.Warn("an interrupted run cannot be continued, since this job differs from it; training starts over, and the snapshot of that run is deleted", "differences", reasons)
		return nil, nil, nil, nil
	}
	return data, x, id, nil
}

// differences says in what this run differs from the one that id is of.
func (r *run) differences(id *identity) (reasons []string, err error) {
	earlier, err := configs.Parse("the interrupted job", []byte(id.Job), configs.LoadOptions{Saved: true})
	if err != nil { // a key was renamed or removed since
		return []string{err.Error()}, nil
	}
	if reasons, err = r.job.Differences(earlier); err != nil {
		return nil, err
	}
	reasons = slices.DeleteFunc(reasons, func(key string) bool {
		return strings.HasPrefix(key, "snapshots.") || key == "output.keep_generations"
	})
	if night := r.job.Night(); night != id.Night {
		reasons = append(reasons, fmt.Sprintf("the job's date (%s, was %s)", or(night, "none"), or(id.Night, "none")))
	}
	if len(reasons) > 0 {
		return reasons, nil // other data follow from that
	}
	if reason := r.otherStart(id.Start); reason != "" {
		reasons = append(reasons, reason)
	}
	for _, data := range []struct {
		key         string
		before, now *source.Listing
	}{{"data.train", id.Train, r.data.train}, {"data.eval", id.Eval, r.data.eval}} {
		if err := source.SameFiles(filesOf(data.before), filesOf(data.now)); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", data.key, err))
		}
	}
	return reasons, nil
}

func filesOf(l *source.Listing) []source.File {
	if l == nil {
		return nil
	}
	return l.Files
}

// damaged reports whether the files of an interrupted run are damaged or incomplete, so
// that no process can go on with them.
func damaged(err error) bool {
	var table *sparsetable.CorruptionError
	var dir *modeldir.CorruptionError
	return errors.As(err, &table) || errors.As(err, &dir) || errors.Is(err, sparsetable.ErrNoSnapshot)
}

// goOn takes over the generation of an interrupted run, and opens everything at its last
// snapshot.
func (r *run) goOn(ctx context.Context, data []byte, x *resumption, id *identity) error {
	changed := fmt.Errorf("model directory %s: %w: another run has used it meanwhile; try again", r.job.Output.ModelDir, modeldir.ErrLocked)
	w, err := modeldir.Continue(r.job.Output.ModelDir, func(now []byte) (bool, error) {
		if !bytes.Equal(now, data) {
			return false, changed
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	r.models.writer = w
	if w.Resume() == nil {
		return changed
	}
	w.Keep, r.start = r.job.Output.KeepGenerations, id.Start
	r.logLeftovers()
	r.snapshots.saved = &image{resume: *x}
	r.snapshots.summary, r.earlier = x.Snapshots, x.Seconds
	r.data.statistics, r.final = id.Statistics, x.Final
	if err := r.applyStatistics(); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := r.makeModel(); err != nil {
		return err
	}
	if err := r.state.decode(x.State); err != nil {
		return r.incomplete(err)
	}
	r.state.Online, r.state.Reader = x.Online, x.Reader
	r.snapshots.saved.resume.best = r.state.Best
	if x.Final != nil {
		r.snapshots.saved.resume.best = nil
	}
	r.snapshots.examples = r.state.Examples
	if err := r.takeReports(x); err != nil {
		return err
	}
	if err := r.takeTable(ctx, x); err != nil {
		return err
	}
	if x.Final == nil {
		if err := r.takeDense(x); err != nil {
			return err
		}
	}
	here := x.place()
	r.resumed = append(x.Resumed, here)
	r.log.Info("training goes on from the snapshot of an interrupted run", "epoch", here.Epoch, "step", here.Step, "trained_examples", here.Examples)
	return nil
}

// takeReports opens the reports of the interrupted run and cuts off what it wrote after
// the snapshot.
func (r *run) takeReports(x *resumption) (err error) {
	if r.data.quarantine, err = openQuarantine(r.models.writer, 0); err != nil {
		return err
	}
	size := r.state.Quarantine
	if c := r.state.Reader; c != nil && r.state.Epoch == 1 { // later epochs record no bad rows
		size += c.QuarantineBytes
	}
	if err := cutQuarantine(r.data.quarantine, size); err != nil {
		return err
	}
	at := x.Reports
	if path := r.job.Output.Metrics; path != "" && staged(r.models.writer, r.job.Output.ModelDir, path) == path {
		others, size, err := linesOfOthers(path, at.Metrics, x.Step)
		if err != nil {
			return fmt.Errorf("output.metrics: %w", err)
		}
		if others {
			r.log.Warn("output.metrics: other runs have written to the file since the snapshot, so lines of this run after it may be there twice", "file", path)
			at.Metrics = size
		}
	}
	r.reports, err = openReports(r.job, r.models.writer, &at)
	return err
}

// linesOfOthers reports whether a metrics file outside of the model directory has lines
// after the first from bytes that are not of the run whose snapshot is of this step. The
// steps of one run do not go down. It also returns the length of the file.
func linesOfOthers(path string, from, step int64) (others bool, size int64, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	size = int64(len(data))
	for line := range bytes.Lines(data[min(from, size):]) {
		var l metricsLine
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

// takeTable opens the table at the snapshot and drops all other ones.
func (r *run) takeTable(ctx context.Context, x *resumption) (err error) {
	if r.table.dirs, err = r.models.writer.TakeTable(); err != nil {
		return err
	}
	if err := r.openTableIn(ctx, r.placedTable(), x.Snapshot); err != nil {
		return err
	}
	if err := r.checkSnapshot(x); err != nil {
		return err
	}
	r.dropOthers(&r.snapshots.saved.resume)
	return nil
}

// takeDense reads the dense tensors and makes the engine.
func (r *run) takeDense(x *resumption) error {
	saved, err := r.models.writer.ReadDense(modeldir.DenseName(x.Step))
	if errors.Is(err, fs.ErrNotExist) {
		return r.incomplete(err)
	}
	if err != nil {
		return err
	}
	if err := loadTensors(r.tensors(x.Step), saved); err != nil {
		return r.incomplete(err)
	}
	return r.makeEngine()
}

// checkSnapshot checks that the table's snapshot is of the same instant as the rest.
func (r *run) checkSnapshot(x *resumption) error {
	infos, err := r.table.Snapshots()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.ID == x.Snapshot && bytes.Equal(info.Record, x.tableRecord()) {
			return nil
		}
	}
	return r.incomplete(fmt.Errorf("snapshot %d of the table is not of step %d", x.Snapshot, x.Step))
}

// incomplete is the error for what an interrupted run has left if its parts do not fit.
func (r *run) incomplete(err error) error {
	return &modeldir.CorruptionError{File: r.models.writer.TableDir(), Offset: -1, Reason: err.Error()}
}

// giveUp closes what goOn has opened and deletes the interrupted run's generation.
func (r *run) giveUp() error {
	var errs []error
	if r.reports != nil {
		errs = append(errs, r.reports.close())
	}
	if r.data.quarantine != nil {
		errs = append(errs, r.data.quarantine.Close())
	}
	r.closeTable()
	errs = append(errs, r.models.writer.Close())
	r.reports, r.data.quarantine, r.models.writer, r.engine, r.table.dirs, r.final = nil, nil, nil, nil, nil, nil
	r.state, r.resumed, r.earlier, r.start, r.snapshots = State{}, nil, 0, nil, newSnapshots(r)
	var err error
	r.parts, err = makeParts(r.job) // without the statistics of that run
	return errors.Join(append(errs, err)...)
}

// openQuarantine opens the file of bad rows. They may hold personal data, so only the
// owner of the file may read it.
func openQuarantine(w *modeldir.Writer, flag int) (*os.File, error) {
	f, err := os.OpenFile(w.Report(quarantineName), os.O_RDWR|os.O_CREATE|flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("quarantine file: %w", err)
	}
	return f, nil
}
