package modeldir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modeldir/internal/outside"
	"aibox/trainer/modelfiles"
)

// A generation that is restored from elsewhere has RESTORE.json, which identifies it, until it is
// complete. If the process is killed, another one that restores the same generation to the same
// directories continues with the files that are there. A training run deletes it, like the
// generations of runs that died.

const restoreName = "RESTORE.json"

type restoreFile struct {
	ID string `json:"id"`
}

// Restoring is a generation that is being restored. It holds the directory's lock until
// Close.
type Restoring struct {
	w     *Writer
	dirs  []string       // of the table, elsewhere; nil if it is in the generation
	place map[string]int // of the table's files on SSD: index in dirs
}

// ErrHasModel says that a model cannot be restored to a directory that has one.
var ErrHasModel = errkind.New(errkind.Usage, "there is a model already")

// Restore starts to restore a generation to the model directory dir, which must not have a model,
// or continues what another process has begun. id identifies the generation: two that differ in
// anything have different IDs. dirs are those of sparse_table.dirs; if nil, the table is in the
// model directory.
func Restore(dir string, number int, id string, dirs []string) (*Restoring, error) {
	if err := refuseModel(dir); err != nil { // before the lock file is made
		return nil, err
	}
	r, err := lockRestoring(dir)
	if err != nil {
		return nil, err
	}
	if err := r.beginModel(number, id, dirs); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// RestoreBeside starts to restore a model, or a snapshot of a run, to a model directory that may
// have models, or continues to. A model becomes the published one there.
func RestoreBeside(dir, id string, dirs []string) (*Restoring, error) {
	r, err := lockRestoring(dir)
	if err != nil {
		return nil, err
	}
	if err := r.beginBeside(id, dirs); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// ContinueArriving takes the lock of the model directory dir, for a process that fetches missing
// bytes of the table's files of the complete generation gen.
func ContinueArriving(dir, gen string) (*Restoring, error) {
	r, err := lockRestoring(dir)
	if err != nil {
		return nil, err
	}
	r.w.gen = gen
	if r.dirs, err = outside.Dirs(r.w.genDir()); err == nil {
		if m, e := readManifest(dir); e == nil && m.Generation == gen {
			err = r.w.finishPublishing(m) // the process that published it may have died before it did this
		}
		r.removeUnneeded()
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// DirsFor returns to which of dirs, those of sparse_table.dirs, the table of a generation with
// these files is restored: to all of them if it is on SSD. A table in memory is saved in the model
// directory.
func DirsFor(names, dirs []string) []string {
	if slices.ContainsFunc(names, modelfiles.IsIndex) {
		return dirs
	}
	return nil
}

func (r *Restoring) beginModel(number int, id string, dirs []string) error {
	if err := refuseModel(r.w.dir); err != nil {
		return err
	}
	r.w.gen = nameOf(number)
	return r.begin(id, dirs)
}

// beginBeside starts a new generation, or continues that of another process, unless that has its
// table in other places: if one of those is on a failed disk, that generation cannot be deleted.
func (r *Restoring) beginBeside(id string, dirs []string) error {
	all, err := generations(r.w.dir)
	if err != nil {
		return err
	}
	for _, g := range all {
		if at := filepath.Join(r.w.dir, g); restoredIn(at) == id && !isComplete(r.w.dir, g) && disk.Gone(filepath.Join(at, discardedName)) && samePlaces(at, dirs) {
			r.w.gen = g
		}
	}
	if r.w.gen == "" {
		next, err := nextNumber(r.w.dir)
		if err != nil {
			return err
		}
		r.w.gen = nameOf(next)
	}
	return r.begin(id, dirs)
}

func lockRestoring(dir string) (*Restoring, error) {
	lock, err := makeAndLock(dir)
	if err != nil {
		return nil, err
	}
	return &Restoring{w: &Writer{dir: dir, lock: lock, done: true}}, nil
}

// refuseModel fails if dir has a complete generation.
func refuseModel(dir string) error {
	all, err := Generations(dir)
	if errors.Is(err, ErrNoModel) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("model directory %s: %w: it has %s; restore to another directory, or delete it", dir, ErrHasModel, listed(all))
		if !slices.ContainsFunc(all, func(g Generation) bool { return g.Published }) {
			err = fmt.Errorf("%w; none is published: `aibox rollback %s --to N` publishes one", err, humanize.ShellWord(dir))
		}
	}
	return err
}

func (r *Restoring) begin(id string, dirs []string) error {
	all, err := generations(r.w.dir)
	if err != nil {
		return err
	}
	for _, g := range all {
		at := filepath.Join(r.w.dir, g)
		begun := restoredIn(at)
		if g == r.w.gen && begun == id && disk.Gone(filepath.Join(at, discardedName)) && samePlaces(at, dirs) {
			continue
		}
		if isComplete(r.w.dir, g) || g != r.w.gen && !disk.Gone(filepath.Join(at, discardedName)) {
			continue
		}
		if g == r.w.gen || begun != "" || disk.Gone(filepath.Join(at, resumeName)) { // otherwise its run can be resumed
			if err := removeGeneration(at); err != nil && (g == r.w.gen || !errors.Is(err, errRead) && !DiskLost(err)) { // else the next run deletes it
				return err
			}
		}
	}
	gen := r.w.genDir()
	for _, name := range []string{modelfiles.Table, modelfiles.Reports} {
		if err := os.MkdirAll(filepath.Join(gen, name), 0o755); err != nil {
			return err
		}
	}
	if restoredIn(gen) == "" {
		data, err := json.Marshal(restoreFile{id})
		if err != nil {
			return err
		}
		if err := errors.Join(disk.WriteFile(filepath.Join(gen, lockName), nil), disk.WriteFile(filepath.Join(gen, restoreName), data)); err != nil {
			return err
		}
	}
	err = r.placeTable(dirs)
	if errors.Is(err, fs.ErrNotExist) && !samePlaces(gen, dirs) { // another process has deleted one just now, as that of a killed run
		r.w.outside().Close()
		return r.begin(id, dirs)
	}
	return err
}

// restoredIn returns the ID of the generation that is being restored in gen, "" if there is none,
// or if another process has to start anew.
func restoredIn(gen string) string {
	data, err := os.ReadFile(filepath.Join(gen, restoreName))
	var f restoreFile
	if err != nil || json.Unmarshal(data, &f) != nil {
		return ""
	}
	return f.ID
}

// samePlaces reports whether the table of a generation is where dirs say, or has no place yet. If
// one of its directories is lost, the record of what is missing in the others may be lost, too, so
// nothing there can be used.
func samePlaces(gen string, dirs []string) bool {
	placed, err := outside.Dirs(gen)
	if err != nil || checkDirs(placed) != nil {
		return false
	}
	if placed == nil {
		return true
	}
	return slices.EqualFunc(placed, dirs, func(p, dir string) bool {
		abs, err := filepath.Abs(dir)
		return err == nil && filepath.Dir(p) == abs
	})
}

// placeTable makes the directories of the table, or takes over those that another process has made,
// and locks them.
func (r *Restoring) placeTable(dirs []string) error {
	placed, err := outside.Dirs(r.w.genDir())
	if err != nil {
		return err
	}
	if placed == nil {
		r.dirs, err = r.w.PlaceTable(dirs)
		return err
	}
	r.dirs = placed
	for _, dir := range placed {
		if err := r.w.outside().Take(dir); err != nil {
			return err
		}
	}
	return nil
}

// Commit makes the generation, all of whose files are in place, the model of the directory. m is
// its manifest at the source.
func (r *Restoring) Commit(ctx context.Context, m Manifest) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restoring the model: %w", err)
		}
	}()
	m.Generation = r.w.gen
	if !disk.Gone(r.path(modelfiles.Index)) {
		infos, err := sparsetable.RestoreIndex(ctx, r.tableOptions(), []string{r.path(modelfiles.Index)})
		if err != nil {
			return err
		}
		if string(infos[0].Record) != string(m.TableRecord()) {
			return faults.Damaged(r.path(modelfiles.Index), "it was not saved together with "+m.Dense)
		}
		m.TableSnapshot = infos[0].ID
	}
	if err := r.sync(); err != nil {
		return err
	}
	if err := check(r.w.dir, &m); err != nil {
		return err
	}
	if err := publish(r.w.dir, &m); err != nil {
		return err
	}
	if err := r.w.finishPublishing(&m); err != nil {
		return err
	}
	r.removeUnneeded()
	return nil
}

// removeUnneeded deletes files that are not needed once the generation is published.
func (r *Restoring) removeUnneeded() {
	for _, name := range []string{modelfiles.Index, restoreName} {
		_ = os.Remove(r.path(name))
	}
}

// sync makes everything durable that is in place.
func (r *Restoring) sync() error {
	for _, dir := range append([]string{r.w.genDir()}, r.dirs...) {
		if err := disk.SyncTree(dir); err != nil {
			return err
		}
	}
	return disk.SyncDir(r.w.dir)
}

// Leftovers returns why reports at the top of the directory could not be replaced.
func (r *Restoring) Leftovers() []error { return r.w.Leftovers() }

// Number returns the number of the generation.
func (r *Restoring) Number() int { return r.w.Number() }

// Close releases the locks. Restored files stay, and another call of Restore continues with them.
func (r *Restoring) Close() error { return r.w.Close() }
