package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/pace"
	"aibox/trainer/remote"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// Partial recovery (CPR, §2.3): the rows of the lost directories go back to the newest
// snapshot in snapshots.remote or, if there is none, to the model that the run began with; those that
// were saved by priority since go back to the newest of these saves. All
// other rows, and everything else, stay as they are in the newest local snapshot, from which
// the run goes on. The model is not that of an undisturbed run, and says so.
//
// It is a step of its own, between the interrupted run and the one that goes on: it opens the
// table without what is lost, refills it, takes a snapshot, and replaces RESUME.json by one
// that refers to that. So a crash at any instant leaves what was there before, or a run whose
// table is whole. Nothing else is in memory meanwhile: the table, and that which it is
// refilled from, share sparse_table.memory_bytes.

// refillDir is where, in the model directory, the table is restored that the lost rows come
// from.
const refillDir = "refill"

// errNothingLeft says that no rows can go on where those that are lost go back.
var errNothingLeft = errors.New("the table has no snapshot any more from which its other rows could go on")

// refill is what lost rows go back to.
type refill struct {
	from     string
	examples int64                                            // S_last
	step     int64                                            // that these are of, in this run
	newer    []remotesnapshots.SavedRows                      // rows that are newer, the newest first
	open     func(context.Context) (sparsetable.Table, error) // nil: no rows
}

// partially recovers the table of an interrupted run, and reports whether it has. If it cannot,
// the log says why, and the run goes back as a whole.
func (r *run) partially(ctx context.Context, data []byte, x *runstate.Record, id *runstate.Identity, lost *modeldir.LostError) (bool, error) {
	if r.job.Recovery.Mode != configs.RecoveryPartial {
		return false, nil
	}
	whole := func(reason string, err error) (bool, error) {
		r.log.Error("only the lost rows were to go back, but that cannot be; the whole run does", "reason", reason, "error", err)
		return false, nil
	}
	uploads, took := pace.NewUploads(r.job, &r.snapshots.pace), time.Duration(0)
	if s := x.Snapshots.Remote; s != nil {
		took = s.Last()
	}
	switch p := x.Progress(); {
	case uploads.FullPays(took):
		return whole("partial recovery does not pay: for recovery.max_lost_samples, a snapshot would be uploaded every "+uploads.Partial.String(), lost)
	case x.Final != nil:
		return whole("the model was complete, and not committed yet", lost)
	case p.Best != nil && p.Best.Snapshot != x.Snapshot:
		return whole("the best epoch so far has lost rows, too", lost)
	}
	scratch := filepath.Join(r.job.Output.ModelDir, refillDir)
	if err := modeldir.Remove(scratch); err != nil { // of a process that was killed
		return false, err
	}
	from, err := r.refillFrom(ctx, scratch, x, id)
	var gone *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &gone) {
		return whole("the model that the run began with has lost files, too, and is not in output.remote", err)
	}
	if err != nil {
		return false, fmt.Errorf("%w; the lost rows cannot go back to what they were: %w", lost, err)
	}
	if r.job.Snapshots.Remote != "" {
		if from.newer, err = r.store().FetchRows(ctx, r.Layout, filepath.Join(scratch, "rows"), from.step, x.Step); err != nil {
			return false, fmt.Errorf("%w; the rows that were saved by priority cannot be read: %w", lost, errors.Join(err, modeldir.Remove(scratch)))
		}
	}
	rec, err := r.refillTable(ctx, data, x, lost, from)
	err = errors.Join(err, modeldir.Remove(scratch))
	if errors.Is(err, errNothingLeft) {
		return whole("what is left of the table cannot be opened, as where all of its directories are lost", err)
	}
	var budget *sparsetable.BudgetError
	if errors.As(err, &budget) {
		return whole("half of sparse_table.memory_bytes is too little for each of two tables", err)
	}
	if err != nil {
		return false, err
	}
	if rec.RowsLost == 0 {
		r.log.Warn("the lost directories had no rows of the table, so nothing goes back", "lost", lost.Error())
		return true, nil
	}
	r.loss = nil // x tells of it
	model := "the model will not be that of an undisturbed run"
	if rec.Exact() {
		model = "nothing was trained since what they went back to, so the model will be that of an undisturbed run"
	}
	r.log.Error("only the rows of the lost directories have gone back: "+model, "lost", lost.Error(), "from", rec.From,
		"lost_rows", rec.RowsLost, "restored_rows", rec.RowsRestored, "saved_by_priority", rec.RowsByPriority, "lost_samples", rec.LostSamples, "lost_samples_of_run", report.LostSamples(x.Recoveries), "max_lost_samples", r.job.Recovery.MaxLostSamples)
	return true, nil
}

// refillFrom finds what lost rows go back to, and restores it to scratch.
func (r *run) refillFrom(ctx context.Context, scratch string, x *runstate.Record, id *runstate.Identity) (*refill, error) {
	survivors := modeldir.Survivors(r.job.Output.ModelDir)
	if r.job.Snapshots.Remote != "" {
		from, err := r.refillFromSnapshot(ctx, scratch, x, survivors)
		if from != nil || err != nil {
			return from, err
		}
	}
	if id.Start == nil {
		return &refill{from: "a new model"}, nil
	}
	from := &refill{from: id.Start.Name}
	name := id.Start.Name
	m, err := modeldir.Open(name)
	if err == nil {
		if err = m.CheckTable(ctx, r.log); err == nil && m.Arriving() != nil {
			err = sparsetable.ErrArriving
		}
		err = errors.Join(err, m.Close())
	}
	if err != nil {
		if r.job.Output.Remote == "" {
			return nil, fmt.Errorf("the model %s, from which the run has started, cannot be read, and there is no output.remote: %w", name, err)
		}
		_, err := transfer.RestoreWith(ctx, r.data.Sources, transfer.RestoreOptions{
			From: r.job.Output.Remote, Job: r.job.PlainName(), To: scratch, Dirs: r.job.SparseTable.Dirs, Options: r.opts.transfer(),
			BytesPerSecond: int64(r.job.Output.RemoteBytesPerSecond),
			Accept:         func(m *modeldir.Manifest) bool { return m.Identity() == id.Start.Identity },
		})
		if err != nil {
			return nil, err
		}
		name = scratch
	}
	from.open = func(ctx context.Context) (sparsetable.Table, error) {
		m, err := modeldir.Open(name)
		if err != nil {
			return nil, err
		}
		t, err := m.OpenTable(ctx, sparsetable.Options{MemoryBytes: int64(r.job.SparseTable.MemoryBytes) / 2, Logger: r.log, SSD: sparsetable.SSDOptions{Brief: true}})
		return t, errors.Join(err, m.Close()) // the table has a lock of its own
	}
	return from, nil
}

// refillFromSnapshot restores the newest whole snapshot in snapshots.remote of the run that x
// is of; nil: there is none.
func (r *run) refillFromSnapshot(ctx context.Context, scratch string, x *runstate.Record, survivors map[string]string) (*refill, error) {
	s, err := r.store().RestoreUntil(ctx, x.Step, scratch, survivors)
	if err != nil || s == nil {
		return nil, err
	}
	r.restored = s.Arrival
	open := func(ctx context.Context) (sparsetable.Table, error) {
		o, err := s.Table()
		if err != nil {
			return nil, err
		}
		o.Layout = r.Layout
		return sparsetable.Open(ctx, o)
	}
	return &refill{from: s.Name, examples: s.Examples, step: s.Step, open: open}, nil
}

// refillTable opens the table without what is lost, refills it, and makes the result what the
// next run goes on from. x is changed to that.
func (r *run) refillTable(ctx context.Context, data []byte, x *runstate.Record, lost *modeldir.LostError, from *refill) (rec *report.Recovery, err error) {
	w, err := r.takeOver(data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	w.Suspend()
	dirs, err := w.RemakeTable()
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w; none of the directories can be used", lost)
	}
	o := jobparts.TableOptions(r.job)
	o.Dir, o.SSD.Dirs, o.SSD.AllowLost = w.TableDir(), dirs, true
	o.Layout, o.Logger, o.SnapshotID, o.MustExist = r.Layout, r.log, x.Snapshot, true
	o.Init = jobparts.NewRowInit(r.Layout, r.Rows, r.job.Seed, *r.job.SparseTable.InitStddev)
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
		Time: time.Now().UTC().Truncate(time.Second), Mode: configs.RecoveryPartial, Lost: lost.Lost, From: from.from,
		Step: x.Step, Examples: x.Progress().Examples,
	}
	if l := handler.Lost(); l != nil && l.TotalSlots > 0 {
		// Rows that were in no bucket yet are lost without a slot.
		rec.RowsLost, rec.LostShare = l.Rows, max(float64(l.Slots)/float64(l.TotalSlots), float64(l.Rows)/float64(max(l.TotalRows, 1)))
		rec.LostSamples = float64(rec.Examples-from.examples) / float64(x.TotalExamples(r.job)) * rec.LostShare
	}
	before := report.LostSamples(x.Recoveries)
	if most := r.job.Recovery.MaxLostSamples; before+rec.LostSamples > most {
		return nil, &LostSamplesError{Lost: lost, Before: before, Portion: before + rec.LostSamples, Most: most, From: from.from}
	}
	if rec.RowsLost > 0 {
		for i := range from.newer {
			s := &from.newer[i]
			rows, err := s.Refill(ctx, handler)
			if err != nil {
				return nil, fmt.Errorf("restoring lost rows from %s: %w", s.From, err)
			}
			rec.RowsByPriority += rows
			r.log.Info("lost rows go back to what was saved by priority", "save", s.From, "step", s.Step, "rows", rows, "of_rows", s.Rows)
		}
		rec.RowsRestored = rec.RowsByPriority
	}
	if from.open != nil && rec.RowsLost > 0 {
		rows, err := refillRows(ctx, handler, from)
		if err != nil {
			return nil, fmt.Errorf("restoring lost rows from %s: %w", from.from, err)
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

func refillRows(ctx context.Context, to sparsetable.LossHandler, from *refill) (rows int64, err error) {
	t, err := from.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return to.RefillFrom(ctx, t)
}
