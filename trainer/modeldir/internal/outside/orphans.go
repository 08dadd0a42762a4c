package outside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"aibox/internal/disk"
	"aibox/sparsetable"
)

// Orphan is a directory of a table outside model directories (made in an entry of
// sparse_table.dirs) that no known model names.
type Orphan struct {
	Dir        string    `json:"dir"`
	ModelDir   string    `json:"model_dir"`  // the model directory for which it was made; "" if unknown
	Generation string    `json:"generation"` // the generation for which it was made; "" if unknown
	Bytes      int64     `json:"bytes"`
	Modified   time.Time `json:"modified"`
	Reason     string    `json:"reason"` // why nothing needs it, for people
	// Unknown says that an earlier version made it, or that its OWNER.json is lost, so that it may
	// belong to any model. It is not freed.
	Unknown bool `json:"unknown"`
	// Undecided says that the model directory is gone, or does not have that model any more. If the
	// model was deleted, nothing needs the table. But it may have been moved, or copied before, to
	// an unknown place, or its disk may not be mounted. The directory is freed only if it was named
	// by itself.
	Undecided bool `json:"undecided"`
	// named says that the caller listed the directory itself, not the one that contains it.
	named bool
	// killed says that its run ended before it committed a model, or went on without the directory,
	// so that no model can name it.
	killed bool
	tables *Tables
}

// Orphans lists the directories of tables in dirs that no known model names and no run is writing.
// dirs are entries of sparse_table.dirs or directories of single tables. models lists model
// directories; these, and those beside them, are known as well.
func (t *Tables) Orphans(dirs, models []string) ([]Orphan, error) {
	var all []Orphan
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return all, err
		}
		some, err := t.orphansOf(dir, models)
		if all = append(all, some...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// orphansOf lists the orphans in dir or, if dir is a table's directory, dir itself if it is an
// orphan.
func (t *Tables) orphansOf(dir string, models []string) ([]Orphan, error) {
	table := placeName.MatchString(filepath.Base(dir)) && !disk.Gone(filepath.Join(dir, OwnerName))
	inside := dir
	if table {
		inside = filepath.Dir(dir)
	}
	parent, err := lockParent(inside)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if !table {
		return t.orphansIn(dir, models)
	}
	o, err := t.orphanAt(dir, models)
	if err != nil || o == nil {
		return nil, err
	}
	o.named = true
	return []Orphan{*o}, nil
}

// orphansIn lists the orphans in dir. REQUIRES: dir is locked.
func (t *Tables) orphansIn(dir string, models []string) (all []Orphan, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !placeName.MatchString(e.Name()) {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		o, err := t.orphanAt(path, models)
		if err != nil {
			return all, err
		}
		if o != nil {
			all = append(all, *o)
		}
	}
	return all, nil
}

// orphanAt describes dir if it is an orphan. Otherwise it returns nil, also if a run has deleted
// dir meanwhile.
func (t *Tables) orphanAt(dir string, models []string) (*Orphan, error) {
	by, err := readOwner(dir)
	if err != nil {
		return nil, err
	}
	// The lock is checked first, since a run commits its model before it releases it.
	if running, err := isRunning(dir); running || err != nil {
		return nil, err
	}
	for _, err := range t.naming(dir, by, models...) {
		return nil, err // with nil, a model names it
	}
	o := &Orphan{Dir: dir, tables: t}
	if o.Bytes, o.Modified, err = disk.Usage(dir); err != nil || disk.Gone(dir) {
		return nil, err
	}
	if by == nil {
		o.Unknown, o.Reason = true, "it does not say which model directory it was made for, because an earlier version made it: delete it by hand if no model names it in its "+PlacesName
		return o, nil
	}
	o.ModelDir, o.Generation = by.ModelDir, by.Generation
	gen := filepath.Join(by.ModelDir, by.Generation)
	if lock, err := t.LockRemoving(gen); err != nil {
		return nil, nil // a process still reads the model
	} else if lock != nil {
		defer lock.Close()
	}
	listed, err := AllDirs(gen)
	if !hasNone(err) {
		return nil, err
	}
	switch {
	case disk.Gone(by.ModelDir):
		o.Undecided, o.Reason = true, "the model directory is gone"
	case !isAmong(listed, dir): // the generation's number may have been given again
		o.Undecided, o.Reason = true, "the model directory does not have its model any more"
	case t.Needs(by.ModelDir, by.Generation):
		o.killed, o.Reason = true, "its disk had failed, and its run went on without it"
	default:
		o.killed, o.Reason = true, "its run ended without a model"
	}
	return o, nil
}

// MayBeFreed reports whether Free may delete the directory.
func (o *Orphan) MayBeFreed() bool { return !o.Unknown && (o.named || !o.Undecided) }

// Free deletes the directory, unless a known model names it by then, or a process has its table
// open.
func (o *Orphan) Free(models []string) error {
	parent, err := lockParent(filepath.Dir(o.Dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return o.free(models)
}

// free does the work of Free. REQUIRES: the directory's parent is locked.
func (o *Orphan) free(models []string) error {
	now, err := o.tables.orphanAt(o.Dir, models)
	switch {
	case err != nil:
		return err
	case now == nil && disk.Gone(o.Dir): // a run has deleted it
		return nil
	case now == nil:
		return fmt.Errorf("%s is in use", o.Dir)
	case now.Unknown || now.Undecided && !o.named:
		return fmt.Errorf("%s is not deleted: %s", o.Dir, now.Reason)
	}
	err = Free([]string{o.Dir})
	if errors.Is(err, sparsetable.ErrInUse) {
		return fmt.Errorf("%s is not deleted: %w", o.Dir, err)
	}
	return err
}
