package sparsetable

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/blockio"
)

// directories are those of the table.
type directories struct {
	// opts are the options that the table is opened with, with their defaults; without the
	// directories that cannot be used.
	opts     Options
	devices  []blockio.Device // of opts.SSD.Dirs; nil: they are not open
	own      bool             // the devices are closed with the table
	lostDirs []LostDir        // that cannot be used or are empty, with AllowLost
}

// orderDirs puts the directory with the catalog first: a table's directories may be
// named in any order.
func (d *directories) orderDirs(on vfs.FS) error {
	if on == nil {
		on = vfs.Default
		if err := checkArrived(d.opts.SSD.Dirs); err != nil && d.opts.SSD.Source == nil {
			return err
		}
	}
	dirs := d.opts.SSD.Dirs
	first := -1
	var with []string
	for i, dir := range dirs {
		if info, err := on.Stat(on.PathJoin(dir, catalogDir)); err == nil && info.IsDir() {
			first, with = i, append(with, dir)
		}
	}
	if len(with) > 1 {
		if err := d.leaveOutdated(on, with); err != nil {
			return err
		}
		return d.orderDirs(on)
	}
	if first > 0 {
		d.opts.SSD.Dirs = toFront(dirs, first)
		if d.devices != nil {
			d.devices = toFront(d.devices, first)
		}
	}
	return nil
}

// toFront returns a list of the same elements that begins with element i.
func toFront[T any](list []T, i int) []T {
	front := append([]T{list[i]}, list[:i]...)
	return append(front, list[i+1:]...)
}

// checkNoTable returns an error if directories without a catalog have files with
// rows. Such directories are not those of a new table: a directory of a table is
// missing, or its catalog is.
func (d *directories) checkNoTable() error {
	var names []string
	for _, on := range d.devices {
		list, err := on.List()
		if err != nil {
			return fmt.Errorf("sparsetable: list %s: %w", on.Dir(), err)
		}
		var files Files
		for _, n := range list {
			files.add(n, false)
		}
		if len(files.Rows) > 0 {
			names = append(names, filepath.Join(on.Dir(), files.Rows[0]))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s of a table on SSD, but the table's catalog is in none of its directories, %s: name the directory that has it; if it was lost, restore all directories from copies of the same time; if the files are not needed any more, delete them",
		ErrFiles, filesOf(names), strings.Join(d.opts.SSD.Dirs, ", "))
}

// fileNames are the names of the files in the table's directories.
func (d *directories) fileNames() (map[string]bool, error) {
	all := map[string]bool{}
	for _, on := range d.devices {
		names, err := on.List()
		if err != nil {
			return nil, fmt.Errorf("sparsetable: list %s: %w", on.Dir(), err)
		}
		for _, n := range names {
			all[n] = true
		}
	}
	return all, nil
}

func filesOf(names []string) string {
	if len(names) == 1 {
		return names[0] + " is a file"
	}
	return strings.Join(names, ", ") + " are files"
}

// catalogPath is the directory of the catalog.
func (d *directories) catalogPath() string { return filepath.Join(d.opts.SSD.Dirs[0], catalogDir) }
