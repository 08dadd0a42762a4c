package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// already returns what restoring the generation m of d says where an earlier call, or the run that
// made it, has brought that very model to the model directory, so that a command may be given again; nil:
// the directory has none, or another one. Of the table's files it sees that they are there, with their
// sizes; `aibox inspect` reads them. The error says why the model cannot be used.
func (o *RestoreOptions) already(ctx context.Context, d *remote.Directory, m *remote.Manifest) (out *Restored, err error) {
	if o.Beside {
		return nil, nil
	}
	local, err := modeldir.Open(o.To)
	if err != nil {
		return nil, nil // who restores says what is wrong
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	if local.Identity() != m.Identity {
		return nil, nil
	}
	if dirs := local.TableDirs(); !samePlaces(local.Dir, dirs, DirsFor(m, o.Dirs)) {
		return nil, fmt.Errorf("model directory %s: %w: it is this one, but its table is in %s; restore to another directory, or delete it", o.To, modeldir.ErrHasModel, strings.Join(dirs, ", "))
	}
	if err := local.CheckFiles(ctx, o.Logger); err != nil {
		return nil, errkind.As(errkind.IO, fmt.Errorf("model directory %s has this model already, but not all of it: %w; restore to another directory, or delete it", o.To, err))
	}
	out = &Restored{
		ModelDir: o.To, Generation: local.Number(), Job: m.Job, Night: local.OfNight(), Already: true,
		Fetched: remote.Fetched{Bytes: m.Bytes(), From: fmt.Sprintf("%s@%d", d.URI(), m.Number)},
	}
	o.Logger.Info("the model is there already, and whole; nothing is fetched", "from", out.From, "model", o.To, "generation", out.Generation)
	return out, nil
}

// samePlaces reports whether the table in the directories placed, of a model of the model directory
// home, is where dirs, those of sparse_table.dirs, say.
func samePlaces(home string, placed, dirs []string) bool {
	if len(dirs) == 0 {
		return len(placed) == 1 && strings.HasPrefix(placed[0], home+string(filepath.Separator))
	}
	return slices.EqualFunc(placed, dirs, func(p, dir string) bool {
		abs, err := filepath.Abs(dir)
		return err == nil && filepath.Dir(p) == abs
	})
}
