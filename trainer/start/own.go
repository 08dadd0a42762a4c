package start

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
)

// A model may also lose files without losing a disk: a file in the model directory itself, of the
// dense part or of a table there, may be deleted or damaged. `aibox restore` restores such a model,
// and so does the next night.

// ownLossOf returns the loss of files of a table in the model directory, or damage that shows
// without reading rows; nil if there is none.
func (m *Model) ownLossOf(ctx context.Context, p *modeldir.Model) error {
	if dirs := p.TableDirs(); !strings.HasPrefix(dirs[0], filepath.Clean(p.Dir)+"/") { // such a table has been checked already
		return nil
	}
	return p.CheckFiles(ctx, m.Log)
}

// restoreOwn restores the published model c from output.remote if fault says that files of it are
// lost or damaged, and reports whether it did. If exactly that model is not there, whoever opens it
// next reports the fault.
func (m *Model) restoreOwn(ctx context.Context, c *chain.Choice, fault error) (restored bool, err error) {
	uri := m.Job.Output.Remote
	dir, number := modeldir.SplitName(c.Name)
	if uri == "" || number != 0 || !lostFiles(fault) {
		return false, nil
	}
	m.Log.Error("files of the model to start from are missing or damaged; it is restored from output.remote", "model", c.Name, "remote", uri, "error", fault)
	var remaining map[string]string
	if p := modeldir.Unread(dir); p != nil {
		remaining = p.RemainingFiles()
	}
	out, err := m.restoreBeside(ctx, remaining, c.Identity, nil)
	if notThere(err) {
		m.Log.Error("output.remote has no complete copy of that model", "remote", uri, "reason", err)
		return false, nil
	}
	return m.restored(c, fault, out, err)
}

// lostFiles reports whether a model cannot be used because files of it are missing or damaged.
func lostFiles(fault error) bool {
	return errors.As(fault, new(*modeldir.LostError)) || errors.As(fault, new(*modeldir.CorruptionError)) ||
		errors.As(fault, new(*sparsetable.CorruptionError)) || errors.Is(fault, fs.ErrNotExist)
}
