package modeldir

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
)

// A restored generation may turn out never to become complete. Then it is given up, and another one
// is restored beside it, which may use files of its table.

// discardedName is a file in a generation that was restored and given up.
const discardedName = "DISCARDED"

// Discard gives up what was restored so far. If it was published, it first ceases to be the model.
// The remaining files of its table stay for Discarded, until RemoveDiscarded.
func (r *Restoring) Discard() error {
	if err := unpublish(r.w.dir, r.w.gen); err != nil {
		return err
	}
	if err := endGeneration(r.w.genDir()); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(r.w.genDir(), discardedName), nil)
}

// Discarded returns the paths of the tables' files that were given up, by their names in a list of
// a model's files. They may be damaged.
func (r *Restoring) Discarded() map[string]string {
	out := make(map[string]string)
	given, _ := discarded(r.w.dir)
	for _, g := range given {
		maps.Copy(out, remainingFiles(filepath.Join(r.w.dir, g)))
	}
	return out
}

// RemoveDiscarded deletes what was given up. If a process is reading it, or a disk of its table has
// failed, its files stay until another process uses the directory.
func (r *Restoring) RemoveDiscarded() error {
	given, err := discarded(r.w.dir)
	for _, g := range given {
		if err := removeGeneration(filepath.Join(r.w.dir, g)); err != nil && !errors.Is(err, errRead) && !DiskLost(err) {
			return err
		}
	}
	return err
}

// RemoveDiscarded deletes restored generations of the model directory dir that were given up.
func RemoveDiscarded(dir string) error {
	if given, err := discarded(dir); len(given) == 0 {
		return err
	}
	r, err := lockRestoring(dir)
	if err != nil {
		return err
	}
	return errors.Join(r.RemoveDiscarded(), r.Close())
}

func discarded(dir string) ([]string, error) {
	all, err := generations(dir)
	return slices.DeleteFunc(all, func(g string) bool { return disk.Gone(filepath.Join(dir, g, discardedName)) }), err
}
