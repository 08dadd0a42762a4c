package refill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/pace"
	"aibox/trainer/remote"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// dirName is where, in the model directory, the table is restored that the lost rows come
// from.
const dirName = "refill"

// errNothingLeft says that no rows can go on where those that are lost go back.
var errNothingLeft = errors.New("the table has no snapshot any more from which its other rows could go on")

// Run is an interrupted run whose table has lost files.
type Run struct {
	Job    *configs.Job
	Parts  *jobparts.Parts
	Store  *remotesnapshots.Store
	Record *runstate.Record // Do changes it to what the next run goes on from
	Start  *chain.Start     // the model that it has started from; nil: a new one
	Lost   *modeldir.LostError
	Pace   pace.Uploads
	// TakeOver takes over the generation of the run.
	TakeOver func() (*modeldir.Writer, error)
	// Restored is set to what is restored to refill the table from.
	Restored *report.Arrival
}

// Do recovers the table, and says how. If it cannot, and the run has to go back as a whole, the log says why, and the result is nil.
func (r *Run) Do(ctx context.Context) (*report.Recovery, error) {
	x, log := r.Record, r.Store.Log
	whole := func(reason string, err error) (*report.Recovery, error) {
		log.Error("only the lost rows were to go back, but that cannot be; the whole run does", "reason", reason, "error", err)
		return nil, nil
	}
	took := time.Duration(0)
	if s := x.Snapshots.Remote; s != nil {
		took = s.Last()
	}
	switch p := x.Progress(); {
	case r.Pace.FullPays(took):
		return whole("partial recovery does not pay: for recovery.max_lost_samples, a snapshot would be uploaded every "+r.Pace.Partial.String(), r.Lost)
	case x.Final != nil:
		return whole("the model was complete, and not committed yet", r.Lost)
	case p.Best != nil && p.Best.Snapshot != x.Snapshot:
		return whole("the best epoch so far has lost rows, too", r.Lost)
	}
	scratch := filepath.Join(r.Job.Output.ModelDir, dirName)
	if err := modeldir.Remove(scratch); err != nil { // of a process that was killed
		return nil, err
	}
	from, err := r.origin(ctx, scratch)
	var gone *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &gone) {
		return whole("the model that the run began with has lost files, too, and is not in output.remote", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the lost rows cannot go back to what they were: %w", r.Lost, err)
	}
	if r.Job.Snapshots.Remote != "" {
		if from.newer, err = r.Store.FetchRows(ctx, r.Parts.Layout, filepath.Join(scratch, "rows"), from.step, x.Step); err != nil {
			return nil, fmt.Errorf("%w; the rows that were saved by priority cannot be read: %w", r.Lost, errors.Join(err, modeldir.Remove(scratch)))
		}
	}
	rec, err := r.table(ctx, from)
	err = errors.Join(err, modeldir.Remove(scratch))
	if errors.Is(err, errNothingLeft) {
		return whole("what is left of the table cannot be opened, as where all of its directories are lost", err)
	}
	var budget *sparsetable.BudgetError
	if errors.As(err, &budget) {
		return whole("half of sparse_table.memory_bytes is too little for each of two tables", err)
	}
	if err != nil {
		return nil, err
	}
	if rec.RowsLost == 0 {
		log.Warn("the lost directories had no rows of the table, so nothing goes back", "lost", r.Lost.Error())
		return rec, nil
	}
	model := "the model will not be that of an undisturbed run"
	if rec.Exact() {
		model = "nothing was trained since what they went back to, so the model will be that of an undisturbed run"
	}
	log.Error("only the rows of the lost directories have gone back: "+model, "lost", r.Lost.Error(), "from", rec.From,
		"lost_rows", rec.RowsLost, "restored_rows", rec.RowsRestored, "saved_by_priority", rec.RowsByPriority, "lost_samples", rec.LostSamples, "lost_samples_of_run", report.LostSamples(x.Recoveries), "max_lost_samples", r.Job.Recovery.MaxLostSamples)
	return rec, nil
}

// table opens the table without what is lost, refills it, and makes the result what the
// next run goes on from.
func (r *Run) table(ctx context.Context, from *origin) (rec *report.Recovery, err error) {
	x, lost := r.Record, r.Lost
	w, err := r.TakeOver()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	w.Suspend()
	dirs, made, err := w.RemakeTable()
	if err != nil {
		return nil, err
	}
	defer func() { // when the table is closed
		if errors.As(err, new(*LostSamplesError)) { // it says that nothing was changed
			err = errors.Join(err, w.UnmakeTable(made))
		}
	}()
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w; none of the directories can be used", lost)
	}
	o := jobparts.TableOptions(r.Job)
	o.Dir, o.SSD.Dirs, o.SSD.AllowLost = w.TableDir(), dirs, true
	o.Layout, o.Logger, o.SnapshotID, o.MustExist = r.Parts.Layout, r.Store.Log, x.Snapshot, true
	o.Init = jobparts.NewRowInit(r.Parts.Layout, r.Parts.Rows, r.Job.Seed, *r.Job.SparseTable.InitStddev)
	o.MemoryBytes, o.SSD.Brief = o.MemoryBytes/2, true
	t, err := sparsetable.Open(ctx, o)
	if modeldir.Damaged(err) {
		return nil, fmt.Errorf("%w: %w", errNothingLeft, err)
	}
	if err != nil {
		return nil, fmt.Errorf("sparse_table: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	handler, ok := t.(sparsetable.LossHandler)
	if !ok {
		return nil, sparsetable.ErrUnsupported
	}
	rec = &report.Recovery{
		Time: time.Now().UTC().Truncate(time.Second), Mode: configs.RecoveryPartial, Lost: lost.Lost, From: from.name,
		Step: x.Step, Examples: x.Progress().Examples,
	}
	if l := handler.Lost(); l != nil && l.TotalSlots > 0 {
		// Rows that were in no bucket yet are lost without a slot.
		rec.RowsLost, rec.LostShare = l.Rows, max(float64(l.Slots)/float64(l.TotalSlots), float64(l.Rows)/float64(max(l.TotalRows, 1)))
		rec.LostSamples = float64(rec.Examples-from.examples) / float64(x.TotalExamples(r.Job)) * rec.LostShare
	}
	before := report.LostSamples(x.Recoveries)
	if most := r.Job.Recovery.MaxLostSamples; before+rec.LostSamples > most {
		return nil, &LostSamplesError{Lost: lost, Before: before, Portion: before + rec.LostSamples, Most: most, From: from.name}
	}
	if rec.RowsLost > 0 {
		for i := range from.newer {
			s := &from.newer[i]
			rows, err := s.Refill(ctx, handler)
			if err != nil {
				return nil, fmt.Errorf("restoring lost rows from %s: %w", s.From, err)
			}
			rec.RowsByPriority += rows
			r.Store.Log.Info("lost rows go back to what was saved by priority", "save", s.From, "step", s.Step, "rows", rows, "of_rows", s.Rows)
		}
		rec.RowsRestored = rec.RowsByPriority
	}
	if from.open != nil && rec.RowsLost > 0 {
		rows, err := from.refill(ctx, handler)
		if err != nil {
			return nil, fmt.Errorf("restoring lost rows from %s: %w", from.name, err)
		}
		rec.RowsRestored += rows
	}
	pending, err := t.Snapshot(ctx, x.TableRecord())
	if err != nil {
		return nil, err
	}
	info, err := pending.Wait()
	if err != nil {
		return nil, err
	}
	if err := x.Refilled(info.ID); err != nil {
		return nil, err
	}
	if rec.RowsLost > 0 {
		x.Recoveries = append(x.Recoveries, *rec)
	}
	saved, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.KeepTableDirs(dirs), w.SaveResume(saved)); err != nil {
		return nil, err
	}
	return rec, dropOlder(t, x)
}

// dropOlder drops the snapshots of a table that was refilled but that of x: they have files that are
// lost, and one that cannot be read would keep the table from being opened.
func dropOlder(t sparsetable.Table, x *runstate.Record) error {
	all, err := t.Snapshots()
	for _, s := range all {
		if s.ID != x.Snapshot {
			err = errors.Join(err, t.DropSnapshot(s.ID))
		}
	}
	return err
}
