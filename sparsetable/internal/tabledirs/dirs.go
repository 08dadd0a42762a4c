package tabledirs

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// CatalogName is the name of the catalog's directory in the first of a table's
// directories.
const CatalogName = "catalog"

// Set is the directories of a table.
type Set struct {
	Options
	Names   []string         // the one with the catalog is first after Order
	Devices []blockio.Device // of Names; nil: not open
	Lost    []Lost           // directories that cannot be used or are empty, with AllowLost
	own     bool             // the devices were opened by OpenDevices
}

// Options say how directories are used, see sparsetable.SSDOptions and sparsetable.Options.
type Options struct {
	ReadOnly   bool
	SnapshotID uint64
	AllowLost  bool
	QueueDepth int
	Direct     blockio.Mode
	Source     blockio.Source
	Logger     *slog.Logger
}

// Order puts the directory with the catalog first: a table's directories may be named in any order.
func (d *Set) Order(on vfs.FS) error {
	if on == nil {
		on = vfs.Default
		if err := CheckArrived(d.Names); err != nil && d.Source == nil {
			return err
		}
	}
	dirs := d.Names
	first := -1
	var with []string
	for i, dir := range dirs {
		if info, err := on.Stat(on.PathJoin(dir, CatalogName)); err == nil && info.IsDir() {
			first, with = i, append(with, dir)
		}
	}
	if len(with) > 1 {
		if err := d.leaveOutdated(on, with); err != nil {
			return err
		}
		return d.Order(on)
	}
	if first > 0 {
		d.Names = toFront(dirs, first)
		if d.Devices != nil {
			d.Devices = toFront(d.Devices, first)
		}
	}
	return nil
}

// toFront returns a copy of list with element i moved to the front.
func toFront[T any](list []T, i int) []T {
	front := append([]T{list[i]}, list[:i]...)
	return append(front, list[i+1:]...)
}

// CheckNoTable returns an error if directories without a catalog have files with rows. A new table
// must not be made there: a directory of an existing table is missing, or its catalog is.
func (d *Set) CheckNoTable() error {
	var names []string
	for _, on := range d.Devices {
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
		contract.ErrFiles, filesOf(names), strings.Join(d.Names, ", "))
}

// FileNames returns the names of the files in the table's directories.
func (d *Set) FileNames() (map[string]bool, error) {
	all := map[string]bool{}
	for _, on := range d.Devices {
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

// CatalogPath is the directory of the catalog.
func (d *Set) CatalogPath() string { return filepath.Join(d.Names[0], CatalogName) }

// Lost is a directory that cannot be used, or has no file of the table.
type Lost struct {
	Dir string // its name in SSDOptions.Dirs
	// Replaced says that the directory can be used, and is one of the table's again. The other lost
	// directories are not used until the table is opened again.
	Replaced bool
	Err      error // why the directory cannot be used; nil: it is empty
}

// String describes the directory for the log.
func (d Lost) String() string {
	switch {
	case errors.Is(d.Err, fs.ErrNotExist):
		return d.Dir + " (missing)"
	case d.Err != nil:
		return fmt.Sprintf("%s (%v)", d.Dir, d.Err)
	}
	return d.Dir + " (empty)"
}

// LayoutOf returns the layout of a table's rows.
func LayoutOf(f catalog.Format) (layout.Layout, error) {
	l := layout.Layout{ValueDim: f.ValueDim, StateDim: f.StateDim}
	var err error
	if l.Format, err = layout.ParseValueFormat(f.RowFormat); err == nil {
		err = l.Validate()
	}
	return l, err
}

// TableNumber returns the number of a table, which is part of the names of its files.
func TableNumber(f catalog.Format) (uint64, error) {
	n, err := strconv.ParseUint(f.TableID, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("sparsetable: table id: %w", err)
	}
	return n, nil
}
