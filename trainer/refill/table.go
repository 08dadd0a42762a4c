package refill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// table opens the table without the lost files, refills it, and makes the result the state that the
// next run resumes from.
func (r *Run) table(ctx context.Context, from *origin) (rec *report.Recovery, err error) {
	w, err := r.TakeOver()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	w.Suspend()
	dirs, made, err := w.RecreateTableDirs()
	if err != nil {
		return nil, err
	}
	defer func() { // runs after the table is closed
		if errors.As(err, new(*LostSamplesError)) { // the error says that nothing was changed
			err = errors.Join(err, w.RemoveTableDirs(made))
		}
	}()
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w: %w", errNothingLeft, r.Lost)
	}
	t, err := r.openLeft(ctx, w.TableDir(), dirs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	handler, ok := t.(sparsetable.LossHandler)
	if !ok {
		return nil, sparsetable.ErrUnsupported
	}
	if rec, err = r.assess(handler.Lost(), from); err != nil {
		return nil, err
	}
	if rec.RowsLost > 0 {
		if err := r.restore(ctx, handler, from, rec); err != nil {
			return nil, err
		}
	}
	if err := r.keep(ctx, t, w, dirs, rec); err != nil {
		return nil, err
	}
	return rec, dropOlder(t, r.Record)
}

// openLeft opens the remaining part of the table, in the directories that exist.
func (r *Run) openLeft(ctx context.Context, dir string, dirs []string) (sparsetable.Table, error) {
	o := jobparts.TableOptions(r.Job)
	o.Dir, o.SSD.Dirs, o.SSD.AllowLost = dir, dirs, true
	o.Layout, o.Logger, o.SnapshotID, o.MustExist = r.Parts.Layout, r.Store.Log, r.Record.Snapshot, true
	o.Init = jobparts.NewRowInit(r.Parts.Layout, r.Parts.Rows, r.Job.Seed, *r.Job.SparseTable.InitStddev)
	o.MemoryBytes, o.SSD.Brief = o.MemoryBytes/2, true
	t, err := sparsetable.Open(ctx, o)
	if modeldir.Damaged(err) {
		return nil, fmt.Errorf("%w: %w", errNothingLeft, err)
	}
	if err != nil {
		return nil, fmt.Errorf("sparse_table: %w", err)
	}
	return t, nil
}

// assess returns what the loss costs if the lost rows go back to from, or a *LostSamplesError if
// that is more than the job allows. l is nil if no row is lost.
func (r *Run) assess(l *sparsetable.Loss, from *origin) (*report.Recovery, error) {
	x := r.Record
	rec := &report.Recovery{
		Time: time.Now().UTC().Truncate(time.Second), Mode: configs.RecoveryPartial, Lost: r.Lost.Lost, From: from.name,
		Step: x.Step, Examples: x.Progress().Examples,
	}
	if l != nil && l.TotalSlots > 0 {
		// Rows that were not in a bucket yet are lost without a slot.
		rec.RowsLost, rec.LostShare = l.Rows, max(float64(l.Slots)/float64(l.TotalSlots), float64(l.Rows)/float64(max(l.TotalRows, 1)))
		rec.LostSamples = float64(rec.Examples-from.examples) / float64(x.TotalExamples(r.Job)) * rec.LostShare
	}
	before := report.LostSamples(x.Recoveries)
	if most := r.Job.Recovery.MaxLostSamples; before+rec.LostSamples > most {
		return nil, &LostSamplesError{Lost: r.Lost, Before: before, Portion: before + rec.LostSamples, Most: most, From: from.name}
	}
	return rec, nil
}

// restore sets the lost rows to their last saved state: the one saved by priority, or else the one
// in from.
func (r *Run) restore(ctx context.Context, t sparsetable.LossHandler, from *origin, rec *report.Recovery) error {
	for i := range from.newer {
		s := &from.newer[i]
		rows, err := s.Refill(ctx, t)
		if err != nil {
			return fmt.Errorf("restoring lost rows from %s: %w", s.From, err)
		}
		rec.RowsByPriority += rows
		r.Store.Log.Info("lost rows go back to what was saved by priority", "save", s.From, "step", s.Step, "rows", rows, "of_rows", s.Rows)
	}
	rec.RowsRestored = rec.RowsByPriority
	if from.open == nil {
		return nil
	}
	rows, err := from.refill(ctx, t)
	if err != nil {
		return fmt.Errorf("restoring lost rows from %s: %w", from.name, err)
	}
	rec.RowsRestored += rows
	return nil
}

// keep makes the current table the state that the next run resumes from.
func (r *Run) keep(ctx context.Context, t sparsetable.Table, w *modeldir.Writer, dirs []string, rec *report.Recovery) error {
	x := r.Record
	pending, err := t.Snapshot(ctx, x.TableRecord())
	if err != nil {
		return err
	}
	info, err := pending.Wait()
	if err != nil {
		return err
	}
	if err := x.Refilled(info.ID); err != nil {
		return err
	}
	if rec.RowsLost > 0 {
		x.Recoveries = append(x.Recoveries, *rec)
	}
	saved, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return errors.Join(w.KeepTableDirs(dirs), w.SaveResume(saved))
}

// dropOlder drops the snapshots of a refilled table, except for that of x: they have lost files,
// and a snapshot that cannot be read would keep the table from being opened.
func dropOlder(t sparsetable.Table, x *runstate.Record) error {
	all, err := t.Snapshots()
	for _, s := range all {
		if s.ID != x.Snapshot {
			err = errors.Join(err, t.DropSnapshot(s.ID))
		}
	}
	return err
}
