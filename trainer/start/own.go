package start

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// Not only a disk of the table takes files from a model: a file in the model directory itself, of the dense part or of
// a table that is there, may be deleted or damaged by itself. `aibox restore` restores such a model, and so does
// the next night.

// ownLossOf says which files a model's table has lost that is in the model directory, or which of them are damaged as far as
// that is seen without reading rows; nil: none.
func (m *Model) ownLossOf(ctx context.Context, p *modeldir.Model) error {
	if dirs := p.TableDirs(); !strings.HasPrefix(dirs[0], filepath.Clean(p.Dir)+"/") { // it was checked
		return nil
	}
	return p.CheckFiles(ctx, m.Log)
}

// restoreOwn restores the published model c from output.remote if fault says that it has lost files, or that they are damaged,
// and reports whether it did. Where the very same model is not there, whoever opens it next says what is wrong.
func (m *Model) restoreOwn(ctx context.Context, c *chain.Choice, fault error) (restored bool, err error) {
	uri := m.Job.Output.Remote
	dir, number := modeldir.SplitName(c.Name)
	if uri == "" || number != 0 || !lostFiles(fault) {
		return false, nil
	}
	m.Log.Error("the model to start from has lost files, or they are damaged; it is restored from output.remote", "model", c.Name, "remote", uri, "error", fault)
	var survivors map[string]string
	if p := modeldir.Unread(dir); p != nil {
		survivors = p.Survivors()
	}
	out, err := m.restoreBeside(ctx, survivors, func(x *modeldir.Manifest) bool { return x.Identity() == c.Identity })
	if errors.Is(err, remote.ErrNone) || errors.As(err, new(*remote.DamagedError)) {
		m.Log.Error("output.remote does not have that model as a whole", "remote", uri, "reason", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the model %s cannot be used (%w), nor restored: %w", c.Name, fault, errkind.As(errkind.IO, err))
	}
	_ = errors.As(fault, &m.Lost)
	m.Log.Info("the model to start from is restored", "from", out.From, "model", modeldir.JoinName(out.ModelDir, out.Generation), "fetched_bytes", out.Moved)
	return true, nil
}

// lostFiles reports whether a model cannot be used because files of it are missing or damaged.
func lostFiles(fault error) bool {
	return errors.As(fault, new(*modeldir.LostError)) || errors.As(fault, new(*modeldir.CorruptionError)) ||
		errors.As(fault, new(*sparsetable.CorruptionError)) || errors.Is(fault, fs.ErrNotExist)
}
