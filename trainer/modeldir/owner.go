package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/sparsetable"
)

// A table's directory outside of the model directory says in OWNER.json to which
// generation of which model directory it belongs. People move, copy and delete model
// directories without aibox. So a table is deleted only if no known model names it;
// known are
//
//   - the owner, and the copies that were opened (OWNER.json lists both),
//   - the directories beside the owner, and beside the one that wants to delete.
//
// When a model that is not the owner is opened, it is added to OWNER.json as a copy. If
// the owner does not name the table any more, the model was moved, and becomes the
// owner. A failure to write OWNER.json is ignored, since a reader may lack permission.

const ownerName = "OWNER.json"

// owner is OWNER.json.
type owner struct {
	ModelDir   string   `json:"model_dir"` // absolute, without symbolic links
	Generation string   `json:"generation"`
	Dirs       []string `json:"dirs"`             // of the table, this one included
	Copies     []string `json:"copies,omitempty"` // other model directories that name the table
}

// readOwner reads who owns dir; it returns nil without an error if that is not recorded.
func readOwner(dir string) (*owner, error) {
	path := filepath.Join(dir, ownerName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := new(owner)
	if err := json.Unmarshal(data, o); err != nil {
		return nil, &CorruptionError{path, noOffset, err.Error()}
	}
	return o, nil
}

func (o *owner) write(dir string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, ownerName), append(data, '\n'))
}

// names reports whether a generation in the model directory model has dir as a directory
// of its table: a complete one, one whose run can go on after an interruption, or one that was restored
// and given up, until another has taken its files.
func names(model, dir string) bool {
	candidates := generations(model)
	if m := placeName.FindStringSubmatch(filepath.Base(dir)); m != nil {
		candidates = []string{m[1]} // no other has it, and model may be a large directory of something else
	}
	for _, gen := range candidates {
		if !isComplete(model, gen) && disk.Gone(filepath.Join(model, gen, resumeName)) && disk.Gone(filepath.Join(model, gen, discardedName)) {
			continue
		}
		if lists(filepath.Join(model, gen), dir) {
			return true
		}
	}
	return false
}

// lists reports whether the generation in gen, complete or not, has dir as a directory of its table.
func lists(gen, dir string) bool {
	dirs, err := tableDirs(gen)
	real := disk.RealDir(dir)
	return err == nil && slices.ContainsFunc(dirs, func(d string) bool { return d == dir || disk.RealDir(d) == real })
}

// naming returns the model directories that are known to name dir. It looks at the
// owner, if there is one, the copies, each of further, and all directories beside
// these.
func naming(dir string, o *owner, further ...string) []string {
	known := slices.Clone(further)
	if o != nil {
		known = append(append(known, o.ModelDir), o.Copies...)
	}
	var models []string
	add := func(model string) {
		if model = disk.RealDir(model); !slices.Contains(models, model) && names(model, dir) {
			models = append(models, model)
		}
	}
	for _, model := range known {
		add(model)
		beside := filepath.Dir(disk.RealDir(model))
		entries, _ := os.ReadDir(beside) // it may be gone
		for _, e := range entries {
			if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
				add(filepath.Join(beside, e.Name()))
			}
		}
	}
	return models
}

// copyOf returns the model directory that owns the table of the model in the directory
// model, if it is another one that still names the table: then the model is a copy of
// it. "" means that the model owns its table. In both cases OWNER.json is updated.
func copyOf(model string, gen string, dirs []string) (original string) {
	model = disk.RealDir(model)
	for _, dir := range dirs {
		o, err := readOwner(dir)
		switch {
		case err != nil:
			continue
		case o == nil, o.ModelDir != model && !names(o.ModelDir, dir):
			o = &owner{ModelDir: model, Generation: filepath.Base(gen), Dirs: dirs}
		case o.ModelDir == model:
			continue
		default:
			original = o.ModelDir
			if slices.Contains(o.Copies, model) {
				continue
			}
			o.Copies = append(slices.DeleteFunc(o.Copies, func(c string) bool { return !names(c, dir) }), model)
		}
		_ = o.write(dir)
	}
	return original
}

// removeTableDirs deletes the table directories of a generation of the model directory
// model, which does not need them any more. It keeps those that another model names,
// and makes that model their owner.
func removeTableDirs(model, gen string, dirs []string) error {
	model = disk.RealDir(model)
	var own []string
	for _, dir := range dirs {
		if disk.Gone(dir) {
			continue
		}
		o, err := readOwner(dir)
		if err != nil {
			return err
		}
		others := naming(dir, o, model)
		if len(others) == 0 {
			own = append(own, dir)
			continue
		}
		if o == nil || !slices.Contains(others, o.ModelDir) {
			now := &owner{ModelDir: others[0], Generation: filepath.Base(gen), Dirs: dirs, Copies: others[1:]}
			if err := now.write(dir); err != nil {
				return err
			}
		}
	}
	return freeTableDirs(own)
}

// freeTableDirs deletes directories of one table. It deletes only files that belong to
// a table, and fails if there are others.
func freeTableDirs(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	lock, err := lockOther(dirs)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
	}
	disk.BeforeChange("remove", dirs[0])
	if err := sparsetable.Remove(dirs, true); err != nil {
		return err
	}
	for _, dir := range dirs {
		for _, name := range []string{ownerName + ".tmp", ownerName} { // a process may have been killed while it wrote the file
			if err := disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		real := disk.RealDir(dir)
		if err := os.Remove(real); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s holds something that does not belong to a table: %w", dir, err)
		}
		if real != dir && !disk.Gone(dir) { // dir is a link to the directory
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockOther keeps the table of dirs from being opened while these are deleted, if its
// catalog is in another one of its directories. It fails with ErrInUse if the table is
// open.
func lockOther(dirs []string) (lock *os.File, err error) {
	o, err := readOwner(dirs[0])
	if err != nil || o == nil {
		return nil, err
	}
	for _, dir := range o.Dirs {
		if slices.ContainsFunc(dirs, func(d string) bool { return disk.RealDir(d) == disk.RealDir(dir) }) {
			continue
		}
		f, err := os.Open(filepath.Join(dir, "catalog", "LOCK"))
		if err != nil {
			continue // the directory has no catalog, or does not exist any more
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", dir, sparsetable.ErrInUse)
		}
		return f, nil
	}
	return nil, nil
}
