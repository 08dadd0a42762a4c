package outside

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/sparsetable"
)

// Run is a table that a run writes.
type Run struct {
	// Freed are directories of killed runs that were found beside those of this run and deleted.
	Freed []Orphan
	// Leftovers are the errors about those that could not be deleted.
	Leftovers []error

	tables *Tables
	model  string // model directory
	gen    string // name of the generation
	locks  []*os.File
}

// NewRun returns the table of the run that makes a generation of a model directory.
func (t *Tables) NewRun(model, gen string) *Run { return &Run{tables: t, model: model, gen: gen} }

// Place makes a directory for the run's table in each of dirs, which it creates if they are
// missing, and returns the absolute paths of the new directories. They belong to the generation and
// are deleted with it. Place is called once, before the table is made. Without dirs it does
// nothing, and the table is in the generation.
func (r *Run) Place(dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	model, err := filepath.Abs(r.model)
	if err != nil {
		return nil, err
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%s", filepath.Base(model), r.gen, hex.EncodeToString(id[:]))
	if over := len(name) - unix.NAME_MAX; over > 0 { // before the generation lists directories that can be neither made nor deleted
		return nil, errkind.Errorf(errkind.Job, "the name of the model directory %s is too long by %s: the names of the directories of its table, in %s, begin with it and may have at most %d bytes", model, humanize.Count(int64(over), "byte"), strings.Join(dirs, ", "), unix.NAME_MAX)
	}
	var all []string
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if err := disk.CheckMounted(dir); err != nil {
			return nil, err
		}
		if err := (sparsetable.OSFS{}).MkdirAll(dir); err != nil {
			return nil, err
		}
		all = append(all, filepath.Join(dir, name))
	}
	if err := r.record(places{Dirs: all}); err != nil {
		return nil, err
	}
	for _, dir := range all {
		if err := r.make(dir, all); err != nil {
			if errors.Is(err, fs.ErrExist) {
				err = fmt.Errorf("%w: are two of %s the same directory?", err, strings.Join(dirs, ", "))
			}
			return nil, err
		}
	}
	return all, nil
}

// make makes one of the directories of the run's table, and frees those that killed runs left
// beside it.
func (r *Run) make(dir string, all []string) error {
	beside := filepath.Dir(dir)
	parent, err := lockParent(beside)
	if err != nil {
		return err
	}
	defer parent.Close()
	r.freeKilled(beside)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	lock, err := lockRun(dir)
	if err != nil {
		return err
	}
	r.locks = append(r.locks, lock)
	if err := r.writeOwner(dir, all); err != nil {
		return err
	}
	return disk.SyncDir(beside)
}

// record writes the list of directories into the generation.
func (r *Run) record(p places) error {
	return writeJSON(filepath.Join(r.model, r.gen, PlacesName), p)
}

// Keep removes all directories but the given ones from the table. The files left in the others are
// deleted with the generation, or by the next run that makes a table beside them.
func (r *Run) Keep(dirs []string) error {
	p, err := readPlaces(filepath.Join(r.model, r.gen))
	if err != nil {
		return err
	}
	for _, dir := range p.Dirs {
		if !slices.Contains(dirs, dir) {
			p.LeftOut = append(p.LeftOut, dir)
		}
	}
	p.Dirs = dirs
	return r.record(p)
}

func (r *Run) writeOwner(dir string, all []string) error {
	o := &owner{ModelDir: disk.RealDir(r.model), Generation: r.gen, Dirs: all}
	return o.write(dir)
}

// Recreate makes one of the directories of a table, or takes it if it exists.
func (r *Run) Recreate(dir string, all []string) error {
	if disk.Gone(dir) {
		if err := disk.CheckMounted(dir); err != nil {
			return err
		}
		if err := (sparsetable.OSFS{}).MkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		return r.make(dir, all)
	}
	if err := r.Take(dir); err != nil {
		return err
	}
	return r.writeOwner(dir, all)
}

// Take takes the lock of one of the directories of the run's table.
func (r *Run) Take(dir string) error {
	parent, err := lockParent(filepath.Dir(dir)) // processes that look for orphans lock both
	if err != nil {
		return err
	}
	defer parent.Close()
	lock, err := lockRun(dir)
	if err != nil {
		return err
	}
	r.locks = append(r.locks, lock)
	return nil
}

// freeKilled frees the directories that killed runs, of this or other model directories, left in
// dir. Other orphans are left for people to decide on. REQUIRES: dir is locked.
func (r *Run) freeKilled(dir string) {
	orphans, err := r.tables.orphansIn(dir, []string{r.model})
	if err != nil {
		r.Leftovers = append(r.Leftovers, err)
	}
	for _, o := range orphans {
		if !o.killed {
			continue
		}
		if err := o.free([]string{r.model}); err != nil {
			r.Leftovers = append(r.Leftovers, err)
		} else {
			r.Freed = append(r.Freed, o)
		}
	}
}

// Close releases the locks of the directories.
func (r *Run) Close() {
	for _, lock := range r.locks {
		lock.Close()
	}
	r.locks = nil
}
