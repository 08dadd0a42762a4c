package tabledirs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/contract"
)

// A directory may come back after the table has continued without it, for example because its disk
// was away for a night and is mounted again. If it is the first directory, its catalog ends with an
// older snapshot than the catalog, or the copy of it, in another directory. That state must not be
// opened in place of the newer one, whose files would be deleted.

// errOutdated says that a directory has an older state than the rest of the table.
var errOutdated = fmt.Errorf("%w: the directory is older than the rest of the table", contract.ErrFiles)

// outdated returns errOutdated with the directories, and what can be done.
func outdated(dir string, last uint64, newer string, newest uint64) error {
	return fmt.Errorf("%w: %s ends with snapshot %d, but %s with snapshot %d: the first one's disk was missing for some time while the table was in use, or it was restored from an older copy. To continue with the newer state, move the table's files out of %s and open the table as after the loss of that directory; to return to the older one, restore all directories from copies of that time",
		errOutdated, dir, last, newer, newest, filepath.Dir(dir))
}

// lastOf is the ID of the last snapshot of an open catalog, kept or not.
func lastOf(fs vfs.FS, c *catalog.Catalog, path string) uint64 {
	last := catalog.LastID(catalog.Head(fs, path))
	for _, s := range c.Snapshots() {
		last = max(last, s.ID)
	}
	return last
}

// checkOutdated fails with errOutdated if a copy of the open catalog is newer than the catalog.
func (d *Set) checkOutdated(o catalog.Options, c *catalog.Catalog) error {
	dir, head := catalogcopy.Newest(o.FS, d.Names, c.Format().TableID)
	if last, newest := lastOf(o.FS, c, o.Dir), catalog.LastID(head); newest > last {
		return outdated(o.Dir, last, dir, newest)
	}
	return nil
}

// leaveOutdated decides between several directories that each have a catalog. With AllowLost, it
// leaves out those that are older than another one of the same table; otherwise it fails.
func (d *Set) leaveOutdated(on vfs.FS, with []string) error {
	var tables []string
	var last []uint64
	newest := 0
	for i, dir := range with {
		path := on.PathJoin(dir, CatalogName)
		c, err := catalog.Open(catalog.Options{Dir: path, FS: on, ReadOnly: true})
		if err == nil {
			tables, last = append(tables, c.Format().TableID), append(last, lastOf(on, c, path))
			err = c.Close()
		}
		if errors.Is(err, catalog.ErrInUse) {
			return apierr.Of(err)
		}
		if err != nil || tables[i] != tables[0] {
			return fmt.Errorf("%w: %s each have a catalog: they belong to different tables, or one was copied", contract.ErrFiles, strings.Join(with, " and "))
		}
		if last[i] > last[newest] {
			newest = i
		}
	}
	for i, dir := range with {
		if i == newest {
			continue
		}
		if last[i] == last[newest] {
			return fmt.Errorf("%w: %s and %s have the same catalog, up to snapshot %d: one was copied, or was made from a copy while the disk of the other was missing: delete the directory %s in one of them", contract.ErrFiles, with[newest], dir, last[i], CatalogName)
		}
		err := outdated(on.PathJoin(dir, CatalogName), last[i], on.PathJoin(with[newest], CatalogName), last[newest])
		if !d.AllowLost {
			return err
		}
		d.LeaveOut(dir, err)
	}
	return nil
}

// LeaveOut removes a directory from the table's and records it as lost.
func (d *Set) LeaveOut(dir string, why error) {
	for i, other := range d.Names {
		if other != dir {
			continue
		}
		if len(d.Devices) == len(d.Names) {
			d.Devices = without(d.Devices, i)
		}
		d.Names = without(d.Names, i)
		d.Lost = append(d.Lost, Lost{Dir: dir, Err: why})
		return
	}
}

// without returns a copy of list without element i.
func without[T any](list []T, i int) []T { return append(append([]T(nil), list[:i]...), list[i+1:]...) }
