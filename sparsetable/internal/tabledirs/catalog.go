package tabledirs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/contract"
)

// OpenCatalog opens the catalog. If the catalog is lost or damaged, it opens its newest copy, or,
// for writing, makes a catalog from that copy.
func (d *Set) OpenCatalog(o catalog.Options) (*catalog.Catalog, error) {
	c, err := catalog.Open(o)
	if err == nil {
		if err = d.checkOutdated(o, c); err == nil {
			return c, nil
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
		if d.AllowLost {
			return d.OpenCopy(o, err)
		}
		return nil, err
	}
	if errors.Is(err, catalog.ErrNotExist) || errors.As(err, new(*catalog.CorruptionError)) {
		return d.OpenCopy(o, err)
	}
	return nil, err
}

// OpenCopy opens the newest copy of the catalog, or, for writing, makes a catalog from it. cause
// says why the catalog itself cannot be used; OpenCopy returns it if no copy is whole. It returns
// another error if the copy and the catalog differ in time, or if files that the table needs are
// missing: then a directory is missing, or does not belong to the table.
func (d *Set) OpenCopy(o catalog.Options, cause error) (*catalog.Catalog, error) {
	found := catalogcopy.Find(o.FS, d.Names, d.Logger)
	if len(found) == 0 {
		return nil, cause
	}
	best := found[0]
	for _, f := range found[1:] {
		if f.Table != best.Table {
			return nil, fmt.Errorf("%w, and there are copies of the catalogs of two tables, %s and %s: name only the directories of one", cause, best.Dir, f.Dir)
		}
	}
	if head := catalog.Head(o.FS, o.Dir); head != nil && !bytes.Equal(head, best.Head()) && !d.AllowLost {
		return nil, fmt.Errorf("%w; its newest copy, in %s, does not have the same snapshots", cause, best.Dir)
	}
	on := o
	var err error
	if on.FS, err = best.FS(); err != nil {
		return nil, err
	}
	on.Dir, on.ReadOnly = best.Dir, true
	c, err := catalog.Open(on)
	if err != nil {
		d.Logger.Warn("sparsetable: the copy of the catalog cannot be used, either", "dir", best.Dir, "error", err)
		return nil, cause
	}
	missing := 0
	if !o.ReadOnly && !d.AllowLost {
		if missing, err = d.filesMissing(c); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if missing > 0 {
		if err := c.Close(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the table's catalog is lost or damaged, and %d of the files that its copy in %s lists are in none of the table's directories, %s: name or mount the directory that has them; if it was lost, restore the table from a copy: %s",
			contract.ErrFiles, missing, best.Dir, strings.Join(d.Names, ", "), cause)
	}
	d.Logger.Warn("sparsetable: the table's catalog is lost or damaged; its copy is used", "catalog", o.Dir, "copy", best.Dir, "error", cause)
	if o.ReadOnly {
		return c, nil
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	if o.FS == nil {
		for _, f := range found { // readers of a copy hold its lock
			lock, err := catalog.LockAlone(f.Dir)
			if err != nil {
				return nil, fmt.Errorf("the table in %s: %w", f.Dir, err)
			}
			defer lock.Close()
		}
	}
	if err := best.Restore(o.Dir); err != nil {
		return nil, fmt.Errorf("sparsetable: restore the catalog in %s from its copy in %s: %w", o.Dir, best.Dir, err)
	}
	o.MustExist = true
	if c, err = catalog.Open(o); err != nil {
		return nil, err
	}
	if err := best.RemoveBeside(o.Dir); err != nil {
		d.Logger.Warn("sparsetable: the copy of the catalog beside the catalog is no longer used, but cannot be deleted", "error", err)
	}
	return c, nil
}

// filesMissing is how many files of the snapshot to be opened are in none of the directories.
func (d *Set) filesMissing(c *catalog.Catalog) (missing int, err error) {
	s, err := c.Snapshot(d.SnapshotID)
	if err != nil {
		return 0, err
	}
	table, err := TableNumber(c.Format())
	if err != nil {
		return 0, err
	}
	have, err := d.FileNames()
	if err != nil {
		return 0, err
	}
	for _, f := range s.Files {
		if !have[bucketfile.FileName(table, f.ID, f.Incarnation)] {
			missing++
		}
	}
	for _, delta := range s.Deltas {
		if !have[delta.Name] {
			missing++
		}
	}
	return missing, nil
}
