package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
)

// deltaLists knows the delta files of a table through the lists that refer to them. A file is
// deleted when no snapshot refers to it, the next one will not, and it is not kept.
type deltaLists struct {
	sync.Mutex
	// base are the files that have the rows with Saved: those of the snapshot that was committed
	// last, or that the table was opened with, even if it was dropped. Only the goroutine that
	// takes a snapshot, or one that excludes snapshots, changes it; these may read it without the
	// mutex.
	base  []catalog.Delta
	files map[string]keptDelta // the table's, by name
	kept  map[string]int       // number of kept snapshots (Keep) that have the file

	closed bool
}

// keptDelta is one of the table's delta files.
type keptDelta struct {
	bytes int64 // 0: it is lost
	dir   int   // the number of the directory that has it
}

// openLists records the files of all snapshots. If the files of the opened snapshot are not in the
// directories for which they were written, the next snapshot refers to none of them.
func (c *Store) openLists(opened catalog.Snapshot) error {
	where, err := c.find()
	if err != nil {
		return err
	}
	f := &c.lists
	f.Lock()
	defer f.Unlock()
	f.files, f.kept = map[string]keptDelta{}, map[string]int{}
	for _, s := range c.Catalog.Snapshots() {
		for _, d := range s.Deltas {
			if dir, here := where[d.Name]; here {
				f.files[d.Name] = keptDelta{d.Bytes, dir}
			} else { // readers report the directory for which it was written
				f.files[d.Name] = keptDelta{dir: min(deltafile.DirOf(d.Name), len(c.Deltas.Devices)-1)}
			}
		}
	}
	if c.inPlace(opened) {
		f.base = WithDirtyRows(opened.Deltas)
	}
	for _, d := range f.files {
		c.files.Charge(d.dir, d.bytes)
	}
	return nil
}

// find returns the directory of each delta file.
func (c *Store) find() (where map[string]int, err error) {
	where = map[string]int{}
	for i, dev := range slices.Backward(c.Deltas.Devices) {
		names, err := c.deltaNames(dev)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			where[n] = i
		}
	}
	return where, nil
}

// deltaNames returns the names of the table's delta files in a directory.
func (c *Store) deltaNames(dev blockio.Device) ([]string, error) {
	names, err := dev.List()
	if err != nil {
		return nil, fmt.Errorf("sparsetable: list %s: %w", dev.Dir(), err)
	}
	prefix := deltafile.Prefix(c.Deltas.Table)
	return slices.DeleteFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, prefix) || !strings.HasSuffix(n, deltafile.Suffix)
	}), nil
}

// DirOf is the number of the directory that has a delta file.
func (c *Store) DirOf(name string) int {
	c.lists.Lock()
	defer c.lists.Unlock()
	return c.lists.files[name].dir
}

// Kept returns the number and the size of the delta files in each directory.
func (c *Store) Kept() (files []int, bytes []int64) {
	files, bytes = make([]int, len(c.Deltas.Devices)), make([]int64, len(c.Deltas.Devices))
	c.lists.Lock()
	defer c.lists.Unlock()
	for _, d := range c.lists.files {
		if d.bytes > 0 {
			files[d.dir]++
			bytes[d.dir] += d.bytes
		}
	}
	return files, bytes
}

// rebase makes the list of a snapshot that was just committed the list of the rows with Saved.
// Without a list, there are no such rows. It deletes the files that are no longer needed. REQUIRES:
// no other snapshot is being fixed or written.
func (c *Store) rebase(list []catalog.Delta) {
	f := &c.lists
	f.Lock()
	for _, d := range list {
		if _, known := f.files[d.Name]; !known {
			f.files[d.Name] = keptDelta{d.Bytes, int(d.Dir)}
		}
	}
	before := f.base
	f.base = WithDirtyRows(list)
	f.Unlock()
	if err := c.deleteUnused(before); err != nil {
		c.Logger.Warn("sparsetable: a file that no snapshot refers to any more could not be removed", "error", err)
	}
}

// Restart makes the next snapshot dump all dirty rows and refer to no earlier file. REQUIRES: no
// snapshot is being fixed or written.
func (c *Store) Restart() { c.rebase(nil) }

// deleteUnused deletes the files of list that nothing refers to any more. A file that cannot be
// deleted counts as one of the table's until the table is opened again.
func (c *Store) deleteUnused(list []catalog.Delta) (err error) {
	for name, d := range c.takeUnused(list) {
		if e := c.removeDelta(name, d); e != nil {
			err = errors.Join(err, e)
			c.lists.Lock()
			c.lists.files[name] = d
			c.lists.Unlock()
		}
	}
	return err
}

// takeUnused returns the files of list that nothing refers to any more, and forgets them.
func (c *Store) takeUnused(list []catalog.Delta) (unused map[string]keptDelta) {
	f := &c.lists
	f.Lock()
	defer f.Unlock()
	if f.closed {
		return nil
	}
	unused = map[string]keptDelta{}
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
		if have, known := f.files[d.Name]; known && !used[d.Name] && f.kept[d.Name] == 0 {
			delete(f.files, d.Name)
			unused[d.Name] = have
		}
	}
	return unused
}

// removeDelta deletes a delta file.
func (c *Store) removeDelta(name string, d keptDelta) error {
	if err := c.Deltas.Devices[d.dir].Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.files.Charge(d.dir, -d.bytes)
	return nil
}

// RemoveUnreferenced deletes the delta files of the table that no snapshot refers to.
func (c *Store) RemoveUnreferenced() error {
	wanted := map[string]bool{}
	for _, s := range c.Catalog.Snapshots() {
		for _, d := range s.Deltas {
			wanted[d.Name] = true
		}
	}
	for _, dev := range c.Deltas.Devices {
		names, err := c.deltaNames(dev)
		if err != nil {
			return err
		}
		for _, n := range names {
			if wanted[n] {
				continue
			}
			if err := dev.Remove(n); err != nil {
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
	c.Copies.Update(true)
	return errors.Join(c.files.EndHold(id), c.deleteUnused(s.Deltas))
}
