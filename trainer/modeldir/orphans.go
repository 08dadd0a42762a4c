package modeldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aibox/sparsetable"
)

// Orphan is a directory of a table elsewhere that no known model names.
type Orphan struct {
	Dir        string    `json:"dir"`
	ModelDir   string    `json:"model_dir"`  // that it was made for; "" if that is not known
	Generation string    `json:"generation"` // likewise
	Bytes      int64     `json:"bytes"`
	Modified   time.Time `json:"modified"`
	Reason     string    `json:"reason"` // why nothing needs it, for people
	// Unknown: it was made by an earlier version, or its OWNER.json is lost, so that
	// it may belong to any model. It is not freed.
	Unknown bool `json:"unknown"`
	// killed: its run ended before it committed a model, so that none can name it.
	killed bool
}

// Orphans lists the directories of tables in dirs, which are entries of
// sparse_table.dirs, that no known model names and no run is writing. models are
// model directories beside which others are looked for, too.
func Orphans(dirs, models []string) ([]Orphan, error) {
	var all []Orphan
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return all, err
		}
		parent, err := lockParent(dir)
		if err != nil {
			return all, err
		}
		some, err := orphansIn(dir, models)
		parent.Close()
		if all = append(all, some...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// orphansIn lists those in one directory. REQUIRES: it is locked.
func orphansIn(dir string, models []string) (all []Orphan, err error) {
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
		o, err := orphanAt(path, models)
		if err != nil {
			return all, err
		}
		if o != nil {
			all = append(all, *o)
		}
	}
	return all, nil
}

// orphanAt is the orphan in dir; nil: it is none.
func orphanAt(dir string, models []string) (*Orphan, error) {
	by, err := readOwner(dir)
	if err != nil {
		return nil, err
	}
	// The lock first: a run commits its model before it gives it up.
	if running, err := isRunning(dir); running || err != nil {
		return nil, err
	}
	if len(naming(dir, by, models...)) > 0 {
		return nil, nil
	}
	o := &Orphan{Dir: dir}
	if o.Bytes, o.Modified, err = usage(dir); err != nil {
		return nil, err
	}
	if by == nil {
		o.Unknown, o.Reason = true, "it does not say which model directory it was made for, as an earlier version left it: delete it by hand if no model names it in its "+placesName
		return o, nil
	}
	o.ModelDir, o.Generation = by.ModelDir, by.Generation
	gen := filepath.Join(by.ModelDir, by.Generation)
	switch {
	case gone(by.ModelDir):
		o.Reason = "the model directory is gone"
	case gone(filepath.Join(gen, placesName)):
		o.Reason = "the model directory has another model now"
	default:
		o.killed, o.Reason = true, "its run ended without a model"
	}
	return o, nil
}

// isRunning reports whether a run has the lock of dir.
func isRunning(dir string) (bool, error) {
	if gone(filepath.Join(dir, lockName)) {
		return false, nil
	}
	lock, err := lockRun(dir)
	if err != nil || lock == nil {
		return err == nil, err
	}
	return false, lock.Close()
}

// usage is what the files in dir take, and when the last of them was written.
func usage(dir string) (bytes int64, last time.Time, err error) {
	err = filepath.WalkDir(dir+"/", func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !e.IsDir() {
			bytes += info.Size()
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return bytes, last, err
}

// Free deletes the directory, unless some model is known to name it by now, or a
// process has its table open.
func (o *Orphan) Free(models []string) error {
	parent, err := lockParent(filepath.Dir(o.Dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return o.free(models)
}

// free is Free while the directory that it is in is locked.
func (o *Orphan) free(models []string) error {
	now, err := orphanAt(o.Dir, models)
	switch {
	case err != nil:
		return err
	case now == nil:
		return fmt.Errorf("%s is in use", o.Dir)
	case now.Unknown:
		return fmt.Errorf("%s is not deleted: %s", o.Dir, now.Reason)
	}
	err = freeTableDirs([]string{o.Dir})
	if errors.Is(err, sparsetable.ErrInUse) {
		return fmt.Errorf("%s is not deleted: %w", o.Dir, err)
	}
	return err
}

// freeKilled frees what runs that were killed left in dir, of this model directory
// or of others. What else no model needs is for people to decide. REQUIRES: dir is
// locked.
func (w *Writer) freeKilled(dir string) {
	orphans, err := orphansIn(dir, []string{w.dir})
	if err != nil {
		w.leftovers = append(w.leftovers, err)
	}
	for _, o := range orphans {
		if !o.killed {
			continue
		}
		if err := o.free([]string{w.dir}); err != nil {
			w.leftovers = append(w.leftovers, err)
		} else {
			w.freed = append(w.freed, o)
		}
	}
}

// Freed are directories that killed runs left where PlaceTable has made those of
// this run; they are deleted.
func (w *Writer) Freed() []Orphan { return w.freed }
