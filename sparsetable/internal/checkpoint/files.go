package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
)

// deltaLists knows the delta files of a table, by the lists that refer to them. A file is
// deleted when neither a snapshot refers to it nor the next one may, and it is not kept.
type deltaLists struct {
	sync.Mutex
	// base are the files that have the rows with Saved: those of the snapshot that was
	// committed last, or that the table was opened with, even if that was dropped. Only
	// who takes a snapshot, or excludes snapshots, changes it, and may read it without the
	// mutex.
	base  []catalog.Delta
	bytes map[string]int64 // of each file, by name
	kept  map[string]int   // how often a file is part of a snapshot that is kept (Keep)
}

// openLists notes the files of all snapshots.
func (c *Store) openLists(opened catalog.Snapshot) {
	f := &c.lists
	f.Lock()
	defer f.Unlock()
	f.bytes, f.kept = map[string]int64{}, map[string]int{}
	for _, s := range c.Catalog.Snapshots() {
		for _, d := range s.Deltas {
			f.bytes[d.Name] = d.Bytes
		}
	}
	f.base = WithDirtyRows(opened.Deltas)
	_, bytes := f.keptLocked()
	c.files.Charge(0, bytes)
}

// Kept returns the number and the size of the delta files.
func (c *Store) Kept() (files int, bytes int64) {
	c.lists.Lock()
	defer c.lists.Unlock()
	return c.lists.keptLocked()
}

func (f *deltaLists) keptLocked() (files int, bytes int64) {
	for _, b := range f.bytes {
		bytes += b
	}
	return len(f.bytes), bytes
}

// rebase makes the list of a snapshot just committed that of the rows with Saved. With
// no list, there are no such rows. It deletes the files that nothing needs any more.
// REQUIRES: no other snapshot is being fixed or written.
func (c *Store) rebase(list []catalog.Delta) {
	f := &c.lists
	f.Lock()
	for _, d := range list {
		f.bytes[d.Name] = d.Bytes
	}
	before := f.base
	f.base = WithDirtyRows(list)
	f.Unlock()
	if err := c.deleteUnused(before); err != nil {
		c.Logger.Warn("sparsetable: a file that no snapshot refers to any more could not be removed", "error", err)
	}
}

// Restart makes the next snapshot dump all dirty rows, and refer to no earlier file.
// REQUIRES: no snapshot is being fixed or written.
func (c *Store) Restart() { c.rebase(nil) }

// deleteUnused deletes those of the files that nothing refers to any more. A file that
// cannot be deleted counts as one of the table's until it is opened again.
func (c *Store) deleteUnused(list []catalog.Delta) (err error) {
	for _, d := range c.takeUnused(list) {
		if e := c.removeDelta(d.Name, d.Bytes); e != nil {
			err = errors.Join(err, e)
			c.lists.Lock()
			c.lists.bytes[d.Name] = d.Bytes
			c.lists.Unlock()
		}
	}
	return err
}

// takeUnused returns those of the files that nothing refers to any more, and forgets them.
func (c *Store) takeUnused(list []catalog.Delta) (unused []catalog.Delta) {
	f := &c.lists
	f.Lock()
	defer f.Unlock()
	used := map[string]bool{}
	for _, d := range f.base {
		used[d.Name] = true
	}
	for _, s := range c.Catalog.Snapshots() {
		for _, d := range s.Deltas {
			used[d.Name] = true
		}
	}
	for _, d := range list {
		if _, known := f.bytes[d.Name]; known && !used[d.Name] && f.kept[d.Name] == 0 {
			delete(f.bytes, d.Name)
			unused = append(unused, d)
		}
	}
	return unused
}

// removeDelta deletes a delta file, which takes that many bytes.
func (c *Store) removeDelta(name string, bytes int64) error {
	if err := c.Deltas.Device.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.files.Charge(0, -bytes)
	return nil
}

// RemoveStrays deletes the delta files of the table that no snapshot refers to.
func (c *Store) RemoveStrays() error {
	wanted := map[string]bool{}
	for _, s := range c.Catalog.Snapshots() {
		for _, d := range s.Deltas {
			wanted[d.Name] = true
		}
	}
	names, err := c.Deltas.Device.List()
	if err != nil {
		return fmt.Errorf("sparsetable: list %s: %w", c.Deltas.Device.Dir(), err)
	}
	prefix := deltafile.Prefix(c.Deltas.Table)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, deltafile.Suffix) && !wanted[n] {
			if err := c.Deltas.Device.Remove(n); err != nil {
				return fmt.Errorf("sparsetable: remove an unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}

// Drop drops a snapshot and deletes the files that only it had.
func (c *Store) Drop(id uint64) error {
	s, err := c.Catalog.Snapshot(id)
	if err == nil {
		err = c.Catalog.Drop(id)
	}
	if err != nil {
		return err
	}
	c.Copies.Update()
	return errors.Join(c.files.Unhold(id), c.deleteUnused(s.Deltas))
}
