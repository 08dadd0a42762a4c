package tabledirs

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
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

// found is one of several directories that each have a catalog.
type found struct {
	dir, table string
	last       uint64
	snapshots  []catalog.Snapshot
}

// leaveOutdated decides between several directories that each have a catalog. With AllowLost, it
// leaves out those whose catalog is damaged, or older than another one of the same table, and deletes
// a catalog that another directory has, too; otherwise it fails. The error of a catalog that cannot be
// read names its directory, so that Open can leave it out.
func (d *Set) leaveOutdated(on vfs.FS, with []string) error {
	var all []found
	var damaged []Lost
	newest := 0
	for _, dir := range with {
		path := on.PathJoin(dir, CatalogName)
		c, err := catalog.Open(catalog.Options{Dir: path, FS: on, ReadOnly: true})
		if d.AllowLost && errors.As(err, new(*catalog.CorruptionError)) {
			damaged = append(damaged, Lost{Dir: dir, Err: err})
			continue
		}
		if err == nil {
			all = append(all, found{dir, c.Format().TableID, lastOf(on, c, path), c.Snapshots()})
			err = c.Close()
		}
		if err != nil {
			return fmt.Errorf("the table in %s: %w", dir, apierr.Of(err))
		}
		i := len(all) - 1
		if all[i].table != all[0].table {
			return fmt.Errorf("%w: %s each have a catalog: they belong to different tables, or one was copied", contract.ErrFiles, strings.Join(with, " and "))
		}
		if all[i].last > all[newest].last {
			newest = i
		}
	}
	for _, l := range damaged {
		if len(all) == 0 || catalog.LastID(catalog.Head(on, on.PathJoin(l.Dir, CatalogName))) > all[newest].last {
			return fmt.Errorf("the table in %s: %w", l.Dir, apierr.Of(l.Err))
		}
		d.LeaveOut(l.Dir, l.Err)
	}
	for i, f := range all {
		if i == newest {
			continue
		}
		n := all[newest]
		if f.last == n.last {
			if d.AllowLost && reflect.DeepEqual(f.snapshots, n.snapshots) && !sameFiles(on, f.dir, n.dir) {
				if err := d.removeSurplus(on, f.dir, n.dir); err != nil {
					return err
				}
				continue
			}
			return fmt.Errorf("%w: %s and %s have the same catalog, up to snapshot %d: one was copied, or was made from a copy while the disk of the other was missing: delete the directory %s in one of them", contract.ErrFiles, n.dir, f.dir, f.last, CatalogName)
		}
		err := outdated(on.PathJoin(f.dir, CatalogName), f.last, on.PathJoin(n.dir, CatalogName), n.last)
		if !d.AllowLost {
			return err
		}
		d.LeaveOut(f.dir, err)
	}
	return nil
}

// sameFiles reports whether two directories have a file with rows of the same name: one is a copy of the other.
func sameFiles(on vfs.FS, a, b string) bool {
	names, err := on.List(a)
	return err != nil || slices.ContainsFunc(names, func(name string) bool {
		_, err := on.Stat(on.PathJoin(b, name))
		return HasRows(name) && err == nil
	})
}

// removeSurplus deletes the catalog in dir, which is the same as that in other. It happens if a process made one of them
// from a copy because the disk of the other one had failed, and died before it committed a snapshot; the disk works
// again.
func (d *Set) removeSurplus(on vfs.FS, dir, other string) error {
	path := on.PathJoin(dir, CatalogName)
	d.Logger.Warn("sparsetable: two directories have the same catalog of the table; one of the catalogs is deleted", "deleted", path, "kept", on.PathJoin(other, CatalogName))
	if vfs.Root(on) == vfs.Default {
		lock, err := catalog.LockAlone(path)
		if err != nil {
			return fmt.Errorf("the table in %s: %w", dir, apierr.Of(err))
		}
		defer lock.Close()
	}
	aside := path + catalogcopy.NewSuffix // a crash must not leave a part of the catalog under its name
	if err := errors.Join(on.RemoveAll(aside), on.Rename(path, aside), catalog.SyncDir(on, dir)); err != nil {
		return err
	}
	return on.RemoveAll(aside)
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
