package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// `aibox restore` publishes a model when everything but the bucket files of its table is there. It
// fetches these afterwards, while it holds the lock of the model directory. If it is killed then,
// it leaves a model that can be read, and a record of what is missing, from which it continues.

// fetchRest fetches what is missing from the generation of m, which is published and which r has
// locked, and verifies it. If it is damaged, the generation is withdrawn.
func (o *RestoreOptions) fetchRest(ctx context.Context, sources *source.Sources, r *modeldir.Restoring, m *remote.Manifest, out *Restored) error {
	s, err := fetchMissing(ctx, sources, o.From, m.ID, o.To, o.BytesPerSecond, o.Logger)
	out.Moved, out.Again = out.Moved+s.FetchedBytes, out.Again+s.Again
	if err == nil { // files that were deleted meanwhile are not fetched
		if lost := lostOf(ctx, o.To, out.Generation, o.Logger); lost != nil {
			return fmt.Errorf("the model in %s lost files while the rest of it was fetched: %w; mount the missing file system. If it is gone for good: delete %[1]s and restore the model again", o.To, lost)
		}
		return nil
	}
	var damaged *remote.DamagedError
	if !errors.As(err, &damaged) {
		o.Logger.Warn("the model is usable, but not all of it has arrived; the same command fetches the rest", "model", o.To, "error", err)
		return fmt.Errorf("the model in %s is usable, but not all of it has arrived; the same command fetches the rest: %w", o.To, err)
	}
	o.Logger.Error("the model turns out to be damaged in the remote directory; what was restored of it is removed", "model", o.To, "generation", m.Number, "error", err)
	return discardDamaged(r, err)
}

// fetchMissing fetches everything that files in the model directory dir miss of the remote generation
// with the given ID, and verifies it. The caller must have locked the model directory.
func fetchMissing(ctx context.Context, sources *source.Sources, uri, id, dir string, bytesPerSecond int64, log *slog.Logger) (s remote.ArrivingStats, err error) {
	records, places := RecordsOf(dir, id)
	if len(records) == 0 {
		return s, nil
	}
	d, err := OpenPresent(sources, uri, bytesPerSecond, "the model is usable; the rest of it is fetched", log)
	if err != nil {
		return s, err
	}
	a, err := OpenArriving(d, records, places)
	if err != nil {
		return s, err
	}
	err = errors.Join(a.Complete(ctx), a.Stop())
	return a.Stats(), err
}

// goOn completes a model whose files have not all arrived, published by an earlier call with the
// same options or by a killed run. It returns nil if there is none. If such a model is known never
// to become complete, it is withdrawn.
func (o *RestoreOptions) goOn(ctx context.Context, sources *source.Sources) (out *Restored, err error) {
	all, _ := modeldir.Generations(o.To) // restoring reports what is wrong
	for _, t := range modeldir.Arriving(o.To) {
		i := slices.IndexFunc(all, func(g modeldir.Generation) bool { return g.Name == t.Generation })
		if i < 0 {
			continue // it belongs to an interrupted run
		}
		said, err := remote.AnnouncedIn(t.Records...)
		if err != nil {
			return nil, fmt.Errorf("the model in %s is incomplete, and the record of what is missing cannot be read: %w; delete %[1]s and restore the model again", o.To, err)
		}
		if said == nil || said.URI != remote.Place(o.From) || o.Number != 0 && o.Number != said.Manifest.Number || o.Job != "" && o.Job != said.Manifest.Job {
			continue
		}
		return o.goOnWith(ctx, sources, &all[i], said)
	}
	return nil, nil
}

func (o *RestoreOptions) goOnWith(ctx context.Context, sources *source.Sources, g *modeldir.Generation, said *remote.Announced) (out *Restored, err error) {
	began := time.Now()
	r, err := modeldir.ContinueArriving(o.To, g.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	warnOfLeftovers(r, o.Logger)
	m := said.Manifest
	at := fmt.Sprintf("%s@%d", strings.TrimRight(o.From, "/"), m.Number)
	if fault := said.Fault(); fault != nil {
		o.Logger.Error("what an earlier process restored is damaged; it is removed", "model", o.To, "generation", g.Number, "error", fault)
		return nil, r.Discard()
	}
	if lost := lostOf(ctx, o.To, g.Number, o.Logger); lost != nil {
		return nil, o.giveUpLost(ctx, sources, r, m, lost)
	}
	o.Logger.Info("the model exists already, and is usable; what is missing is fetched", "from", at, "model", o.To, "generation", g.Number, "bytes_lacking_at_most", humanize.Bytes(said.LackingBytes))
	out = &Restored{ModelDir: o.To, Generation: g.Number, Job: m.Job, Night: g.Manifest.OfNight(), Fetched: remote.Fetched{Bytes: m.Bytes(), From: at}}
	err = o.fetchRest(ctx, sources, r, m, out)
	var damaged *remote.DamagedError
	if errors.As(err, &damaged) && o.Number == 0 && ctx.Err() == nil {
		return nil, nil // it was withdrawn: the newest complete one is restored
	}
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(began).Seconds()
	o.logRestored(out, 0)
	return out, nil
}

// lostOf returns what the table of a generation in the model directory dir has lost, apart from
// bytes that have not arrived; nil if nothing.
func lostOf(ctx context.Context, dir string, number int, log *slog.Logger) error {
	m, err := modeldir.Open(modeldir.JoinName(dir, number))
	if err != nil {
		return err
	}
	return errkind.As(errkind.IO, errors.Join(m.CheckFiles(ctx, log), m.Close()))
}

// giveUpLost withdraws a model that has lost files before all had arrived, so that it is restored
// again. While that is impossible, the model stays as it is, since the disk may come back.
func (o *RestoreOptions) giveUpLost(ctx context.Context, sources *source.Sources, r *modeldir.Restoring, m *remote.Manifest, lost error) error {
	var files *modeldir.LostError
	if !errors.As(lost, &files) {
		return lost
	}
	d, err := OpenPresent(sources, o.From, o.BytesPerSecond, "restoring", o.Logger)
	if err == nil {
		err = d.Whole(ctx, m)
	}
	if err == nil {
		err = modeldir.CheckPlaces(DirsFor(m, o.Dirs))
	}
	if err != nil {
		return fmt.Errorf("the model in %s is incomplete, and has lost files: %w; it cannot be restored again now: %w; mount the missing file system, or delete %[1]s and restore the model again", o.To, lost, err)
	}
	o.Logger.Error("what an earlier process restored lost files before all of them had arrived; it is restored again", "model", o.To, "generation", m.Number, "error", lost)
	return r.Discard()
}

// lockEvery is how often Complete checks the progress of another process.
const lockEvery = time.Second

// Complete returns when all files of a model have arrived. It fetches them, unless another process
// does.
func Complete(ctx context.Context, m *modeldir.Model, sources *source.Sources, bytesPerSecond int64, log *slog.Logger) error {
	for said := false; ; {
		t := m.Arriving()
		if t == nil {
			return nil
		}
		r, err := modeldir.ContinueArriving(m.Dir, m.Generation)
		if errors.Is(err, modeldir.ErrLocked) {
			if !said {
				log.Info("another process is still fetching files of the model; waiting until they have arrived", "model", m.Name)
				said = true
			}
			if err := modeldir.WaitUnlocked(ctx, m.Dir, time.Now().Add(lockEvery)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		warnOfLeftovers(r, log)
		a, err := Announced(m, t.Records)
		if a != nil {
			if lost := lostOf(ctx, m.Dir, m.Number(), log); lost != nil {
				return errors.Join(fmt.Errorf("the model %s is incomplete, and has lost files: %w; mount the missing file system. If it is gone for good: `aibox restore` to its directory restores it again", m.Name, lost), r.Close())
			}
			log.Info("some files of the model have not arrived yet; they are fetched first", "model", m.Name, "remote", a.URI, "bytes_lacking_at_most", humanize.Bytes(a.LackingBytes))
			_, err = fetchMissing(ctx, sources, a.URI, a.Manifest.ID, m.Dir, bytesPerSecond, log)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
}
