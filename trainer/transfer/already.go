package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// already checks whether an earlier call, or the run that made it, has already brought the
// generation m of d to the model directory, so that a command may be repeated. If so, it returns
// what restoring m returns; it returns nil if the directory has no model or another one. It
// completes the model and verifies its table, since the command is for that. If something is
// missing or damaged, it changes o so that the model is restored again, using the remaining files.
// The existing model stays until then.
func (o *RestoreOptions) already(ctx context.Context, sources *source.Sources, d *remote.Directory, m *remote.Manifest) (out *Restored, err error) {
	if o.Beside {
		return nil, nil
	}
	local, fault := modeldir.Open(o.To)
	if errors.As(fault, new(*modeldir.CorruptionError)) || errors.Is(fault, fs.ErrNotExist) {
		local = modeldir.Unread(o.To)
	}
	if local == nil {
		return nil, nil // restoring reports what is wrong
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	if local.Identity() != m.Identity {
		return nil, nil
	}
	if dirs := local.TableDirs(); !samePlaces(local.Dir, dirs, DirsFor(m, o.Dirs)) {
		return nil, fmt.Errorf("model directory %s: %w: it is the model to restore, but its table is in %s; restore to another directory, or delete it", o.To, modeldir.ErrHasModel, strings.Join(dirs, ", "))
	}
	if fault == nil {
		fault = local.CheckFiles(ctx, o.Logger)
	}
	if fault == nil {
		if err := Complete(ctx, local, sources, o.BytesPerSecond, o.Logger); err != nil { // the model came from another remote directory
			return nil, err
		}
		o.Logger.Info("the model exists already; it is verified", "model", o.To, "generation", local.Number(), "bytes", humanize.Bytes(m.Bytes()))
		fault = verifyTable(ctx, local, o.Logger)
	}
	switch {
	case errors.As(fault, new(*modeldir.LostError)), errors.As(fault, new(*modeldir.CorruptionError)), errors.As(fault, new(*sparsetable.CorruptionError)), errors.Is(fault, fs.ErrNotExist):
		o.Logger.Error("the model exists already, but is damaged; it is restored again, from what is left of it and from the remote directory", "model", o.To, "generation", local.Number(), "error", fault)
		o.Beside, o.Buckets, o.RemainingFiles = true, BucketsBefore, local.RemainingFiles()
		return nil, nil
	case fault != nil:
		return nil, errkind.As(errkind.IO, fmt.Errorf("model directory %s has this model already, but it cannot be verified: %w", o.To, fault))
	}
	out = &Restored{
		ModelDir: o.To, Generation: local.Number(), Job: m.Job, Night: local.OfNight(), Already: true,
		Fetched: remote.Fetched{Bytes: m.Bytes(), From: fmt.Sprintf("%s@%d", d.URI(), m.Number)},
	}
	o.Logger.Info("the model is intact", "from", out.From, "model", o.To, "generation", out.Generation)
	return out, nil
}

// verifyTable reads all of a model's table. If something is wrong, the error is a
// *sparsetable.CorruptionError for the first fault.
func verifyTable(ctx context.Context, m *modeldir.Model, log *slog.Logger) error {
	job, err := m.ParseJob(configs.LoadOptions{})
	if err != nil {
		return err
	}
	held, err := m.HoldTable(ctx, log)
	if err != nil {
		return err
	}
	defer held.Close() // it was only read
	o, err := m.TableOptions(sparsetable.Options{MemoryBytes: int64(job.SparseTable.MemoryBytes), Logger: log})
	if err != nil {
		return err
	}
	var fault error
	_, err = sparsetable.Verify(ctx, o, func(f sparsetable.Fault) {
		fault = cmp.Or(fault, error(&sparsetable.CorruptionError{File: f.File, Offset: f.Offset, Reason: f.Reason}))
	}, nil)
	return cmp.Or(fault, err)
}

// samePlaces reports whether the table of a model of the model directory home, which is in the
// directories placed, is where dirs, those of sparse_table.dirs, would put it.
func samePlaces(home string, placed, dirs []string) bool {
	if len(dirs) == 0 {
		return len(placed) == 1 && strings.HasPrefix(placed[0], home+string(filepath.Separator))
	}
	return slices.EqualFunc(placed, dirs, func(p, dir string) bool {
		abs, err := filepath.Abs(dir)
		return err == nil && filepath.Dir(p) == abs
	})
}
