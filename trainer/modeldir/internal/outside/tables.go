package outside

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/trainer/modeldir/internal/faults"
)

// Tables has what this package needs to know of model directories.
type Tables struct {
	// Generations returns the names of the generations in a model directory.
	Generations func(model string) []string
	// Needs reports whether a generation needs its table.
	Needs func(model, gen string) bool
	// LockRemoving takes the lock of the directory of a generation that is to be deleted, and fails
	// if a process reads it. The result is nil if files cannot be locked.
	LockRemoving func(gen string) (*os.File, error)
}

// names reports whether a generation in the model directory model needs dir as a directory of its
// table. It fails if a list cannot be read at the moment; then the table must not be deleted.
func (t *Tables) names(model, dir string) (bool, error) {
	candidates := t.Generations(model)
	if m := placeName.FindStringSubmatch(filepath.Base(dir)); m != nil {
		candidates = []string{m[1]} // no other generation has it, and model may be a large directory of something else
	}
	for _, gen := range candidates {
		if !t.Needs(model, gen) {
			continue
		}
		dirs, err := Dirs(filepath.Join(model, gen))
		if !hasNone(err) {
			return false, err
		}
		if isAmong(dirs, dir) {
			return true, nil
		}
	}
	return false, nil
}

// hasNone reports whether err, an error of reading, says definitely that there is no list or
// directory that this process can read. It also returns true for nil.
func hasNone(err error) bool {
	var damage *faults.Corruption
	return err == nil || errors.As(err, &damage) || slices.ContainsFunc([]error{
		fs.ErrNotExist, fs.ErrPermission, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG,
	}, func(none error) bool { return errors.Is(err, none) })
}

// isAmong reports whether dir is one of dirs, perhaps under another path.
func isAmong(dirs []string, dir string) bool {
	real := disk.RealDir(dir)
	return slices.ContainsFunc(dirs, func(d string) bool { return d == dir || disk.RealDir(d) == real })
}

// naming yields the model directories that are known to name dir, each once. If they cannot all be
// determined, it ends with an error. It looks at the owner, if there is one, at the copies and at
// further, and then at all directories beside these, which may be thousands: those of other nights.
func (t *Tables) naming(dir string, o *owner, further ...string) iter.Seq2[string, error] {
	known := further
	if o != nil {
		known = slices.Concat([]string{o.ModelDir}, o.Copies, further)
	}
	return func(yield func(string, error) bool) {
		seen := make(map[string]bool)
		next := func(model string) bool { // yields it if it names dir
			model = disk.RealDir(model)
			if seen[model] {
				return true
			}
			seen[model] = true
			named, err := t.names(model, dir)
			if err != nil {
				yield("", err)
				return false
			}
			return !named || yield(model, nil)
		}
		for _, model := range known {
			if !next(model) {
				return
			}
		}
		for _, model := range known {
			beside := filepath.Dir(disk.RealDir(model))
			entries, err := disk.ReadDir(beside)
			if !hasNone(err) {
				yield("", err)
				return
			}
			for _, e := range entries {
				if (e.IsDir() || e.Type()&fs.ModeSymlink != 0) && !next(filepath.Join(beside, e.Name())) {
					return
				}
			}
		}
	}
}

// CopyOf returns the model directory that owns the table of the model in the directory model, if it
// is another one that still names the table: then the model is a copy of it. "" means that the
// model owns its table. In both cases CopyOf updates OWNER.json.
func (t *Tables) CopyOf(model string, gen string, dirs []string) (original string) {
	model = disk.RealDir(model)
	for _, dir := range dirs {
		o, err := readOwner(dir)
		if err != nil || o != nil && o.ModelDir == model {
			continue
		}
		if o == nil {
			o = new(owner)
		}
		others := slices.DeleteFunc(slices.Clone(o.Copies), func(c string) bool {
			named, err := t.names(c, dir)
			return c == model || err == nil && !named
		})
		owned, err := false, error(nil)
		if o.ModelDir != "" {
			owned, err = t.names(o.ModelDir, dir)
		}
		if err == nil && !owned {
			o = &owner{ModelDir: model, Generation: filepath.Base(gen), Dirs: dirs, Copies: others}
		} else {
			original = o.ModelDir
			if slices.Contains(o.Copies, model) {
				continue
			}
			o.Copies = append(others, model)
		}
		_ = o.write(dir)
	}
	return original
}

// Remove deletes the table directories of a generation of the model directory model, which does not
// need them any more. It keeps those that another model names, and makes that model their owner. If
// that cannot be determined for a directory, for example because its disk has failed, Remove still
// deletes the others.
func (t *Tables) Remove(model, gen string, dirs []string) error {
	model = disk.RealDir(model)
	var own []string
	var errs []error
	for _, dir := range dirs {
		is, err := t.isOwn(dir, model, gen, dirs)
		if is {
			own = append(own, dir)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, Free(own))...)
}

// isOwn reports whether no other model names dir, one of the directories of a table that model does
// not need any more. Otherwise it makes the other model its owner.
func (t *Tables) isOwn(dir, model, gen string, dirs []string) (bool, error) {
	if disk.Gone(dir) {
		return false, disk.CheckMounted(dir) // the directory exists when that is mounted again
	}
	o, err := readOwner(dir)
	if err != nil {
		return false, err
	}
	var others []string
	for other, err := range t.naming(dir, o, model) {
		if err != nil {
			return false, err
		}
		others = append(others, other)
	}
	if len(others) > 0 && (o == nil || !slices.Contains(others, o.ModelDir)) {
		now := &owner{ModelDir: others[0], Generation: filepath.Base(gen), Dirs: dirs, Copies: others[1:]}
		return false, now.write(dir)
	}
	return len(others) == 0, nil
}
