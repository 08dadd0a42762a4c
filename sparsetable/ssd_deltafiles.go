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
	// committed last, or that the table was opened with, even if that was dropped. Whoever
	// changes it also holds saving, so the holder of saving may read it without the mutex.
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
// no list, there are no such rows. It deletes the files that nothing needs any more.
// REQUIRES: saving is held.
func (t *ssd) rebase(list []catalog.Delta) {
	f := &t.deltas
	f.Lock()
	for _, d := range list {
		f.bytes[d.Name] = d.Bytes
	}
	before := f.base
	f.base = withDirty(list)
	f.Unlock()
	if err := t.deleteUnused(before); err != nil {
		t.log.Warn("sparsetable: a file that no snapshot refers to any more could not be removed", "error", err)
	}
}

// deleteUnused deletes those of the files that nothing refers to any more. A file that
// cannot be deleted counts as one of the table's until it is opened again.
func (t *ssd) deleteUnused(list []catalog.Delta) (err error) {
	for _, d := range t.takeUnused(list) {
		if e := t.removeDelta(d.Name, d.Bytes); e != nil {
			err = errors.Join(err, e)
			t.deltas.Lock()
			t.deltas.bytes[d.Name] = d.Bytes
			t.deltas.Unlock()
		}
	}
	return err
}

// takeUnused returns those of the files that nothing refers to any more, and forgets them.
func (t *ssd) takeUnused(list []catalog.Delta) (unused []catalog.Delta) {
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
	for _, d := range list {
		if _, known := f.bytes[d.Name]; known && !used[d.Name] {
			delete(f.bytes, d.Name)
			unused = append(unused, d)
		}
	}
	return unused
}

// removeDelta deletes a delta file, which takes that many bytes.
func (t *ssd) removeDelta(name string, bytes int64) error {
	if err := t.devices[0].Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.files.Charge(0, -bytes)
	return nil
}
