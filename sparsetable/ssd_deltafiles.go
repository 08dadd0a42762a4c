package sparsetable

import (
	"errors"
	"io/fs"
	"sync"

	"aibox/sparsetable/internal/catalog"
)

// deltaFiles knows the delta files of a table. A file is deleted when neither a snapshot
// refers to it nor the next one may.
type deltaFiles struct {
	sync.Mutex
	// base are the files that have the rows with rowSaved: those of the snapshot that was
	// committed last, or that the table was opened with, even if that was dropped.
	base  []catalog.Delta
	bytes map[string]int64 // of each file, by name
}

// openDeltas notes the files of all snapshots.
func (t *ssd) openDeltas(opened catalog.Snapshot) {
	f := &t.deltas
	f.Lock()
	defer f.Unlock()
	f.bytes = map[string]int64{}
	for _, s := range t.catalog.Snapshots() {
		for _, d := range s.Deltas {
			f.bytes[d.Name] = d.Bytes
		}
	}
	f.base = withDirty(opened.Deltas)
	_, bytes := f.keptLocked()
	t.files.Charge(0, bytes)
}

// deltasKept returns the number and the size of the delta files.
func (t *ssd) deltasKept() (files int, bytes int64) {
	t.deltas.Lock()
	defer t.deltas.Unlock()
	return t.deltas.keptLocked()
}

func (f *deltaFiles) keptLocked() (files int, bytes int64) {
	for _, b := range f.bytes {
		bytes += b
	}
	return len(f.bytes), bytes
}

// rebase makes the list of a snapshot just committed that of the rows with rowSaved. With
// no list, there are no such rows.
func (t *ssd) rebase(list []catalog.Delta) error {
	f := &t.deltas
	f.Lock()
	for _, d := range list {
		f.bytes[d.Name] = d.Bytes
	}
	before := f.base
	f.base = withDirty(list)
	f.Unlock()
	return t.deleteUnused(before)
}

// deleteUnused deletes those of the files that nothing refers to any more.
func (t *ssd) deleteUnused(list []catalog.Delta) error {
	f := &t.deltas
	f.Lock()
	defer f.Unlock()
	used := map[string]bool{}
	for _, d := range f.base {
		used[d.Name] = true
	}
	for _, s := range t.catalog.Snapshots() {
		for _, d := range s.Deltas {
			used[d.Name] = true
		}
	}
	var errs []error
	for _, d := range list {
		if bytes, known := f.bytes[d.Name]; known && !used[d.Name] {
			if err := t.removeDelta(d.Name, bytes); err != nil {
				errs = append(errs, err)
				continue
			}
			delete(f.bytes, d.Name)
		}
	}
	return errors.Join(errs...)
}

// removeDelta deletes a delta file, which takes that many bytes.
func (t *ssd) removeDelta(name string, bytes int64) error {
	if err := t.devices[0].Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.files.Charge(0, -bytes)
	return nil
}
