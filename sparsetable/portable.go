package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
)

// A snapshot can be taken to another machine as files. Those that hold rows are copied as
// they are. Of a table on SSD the index is one more file, which WriteIndex makes from the
// snapshot, and from which RestoreIndex makes a catalog. The directories that the files are
// copied to may be others, and their number another one: the files of a table are found by
// their names.

// PortableFile is a file of a snapshot. As long as the snapshot is there, it does not change.
type PortableFile struct {
	Name  string // the same in every copy of the table
	Path  string
	Bytes int64
	// Unique says that the name has a random part, so no other file has it: not one of
	// another table, nor one that a copy of this table has made.
	Unique bool
}

// PortableFiles returns the files that hold the rows of the snapshot o.SnapshotID (0: the
// newest) of the table in the directories of o. The caller holds the table (Hold).
func PortableFiles(o Options) ([]PortableFile, error) {
	o.ensureDefaults()
	if o.Kind != KindSSD {
		d := snapshotDir{fs: OSFS{}, path: o.Dir}
		path := d.file(o.SnapshotID)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		return []PortableFile{{Name: filepath.Base(path), Path: path, Bytes: info.Size()}}, nil
	}
	old, dirs, err := openCatalog(o)
	if err != nil {
		return nil, tableError(err)
	}
	defer old.Close() // it was only read
	s, err := old.Snapshot(o.SnapshotID)
	if err != nil {
		return nil, tableError(err)
	}
	table, err := tableNumber(old.Format())
	if err != nil {
		return nil, err
	}
	var out []PortableFile
	add := func(name string, unique bool) error {
		f, err := portableFile(name, unique, dirs)
		out = append(out, f)
		return err
	}
	for _, b := range s.Files {
		if err := add(bucketfile.FileName(table, b.ID, b.Incarnation), b.Incarnation != 0); err != nil {
			return nil, err
		}
	}
	for _, d := range s.Deltas {
		if err := add(d.Name, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// openCatalog opens the catalog of the table in the directories of o for reading, and
// returns these with the one that has it first.
func openCatalog(o Options) (*catalog.Catalog, []string, error) {
	t := &ssd{opts: o}
	if err := t.orderDirs(nil); err != nil {
		return nil, nil, err
	}
	c, err := catalog.Open(catalog.Options{Dir: t.catalogPath(), ReadOnly: true, Logger: o.Logger})
	if errors.Is(err, catalog.ErrNotExist) {
		err = fmt.Errorf("%w: none in %s", ErrNoSnapshot, t.catalogPath())
	}
	return c, t.opts.SSD.Dirs, err
}

func portableFile(name string, unique bool, dirs []string) (PortableFile, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil {
			return PortableFile{name, path, info.Size(), unique}, nil
		}
	}
	return PortableFile{}, fmt.Errorf("%w: %s is in none of %v", ErrFiles, name, dirs)
}

// WriteIndex writes the index of the snapshot o.SnapshotID (0: the newest) of a table on
// SSD. The caller holds the table (Hold).
func WriteIndex(o Options, w io.Writer) error {
	o.ensureDefaults()
	c, _, err := openCatalog(o)
	if err != nil {
		return tableError(err)
	}
	return tableError(errors.Join(c.WriteSnapshot(o.SnapshotID, w), c.Close()))
}

// RestoreIndex makes a table on SSD, in the directories of o, of the files of a snapshot,
// which are there, and of its index. name is that of the index in errors. A catalog that
// an interrupted call left behind is replaced. After it the table has that one snapshot.
func RestoreIndex(ctx context.Context, o Options, name string, index io.Reader) (SnapshotInfo, error) {
	o.ensureDefaults()
	s, err := catalog.ReadSnapshot(name, index)
	if err != nil {
		return SnapshotInfo{}, tableError(err)
	}
	if err := os.RemoveAll(filepath.Join(o.SSD.Dirs[0], catalogDir)); err != nil {
		return SnapshotInfo{}, err
	}
	info, err := newCatalog(ctx, o, s.Format, s.Snapshot, s.Pages)
	return info, tableError(err)
}

// SpreadFiles says for each of the names of a snapshot's files, of these sizes, in which of
// n directories it is put. The same files are put into the same directories each time.
func SpreadFiles(names []string, bytes []int64, n int) []int {
	load := make([]int64, n)
	out := make([]int, len(names))
	for i, name := range names {
		at := 0 // that of everything but buckets
		if strings.HasSuffix(name, ".bucket") {
			for j := range load {
				if load[j] < load[at] {
					at = j
				}
			}
		}
		out[i] = at
		load[at] += bytes[i]
	}
	return out
}
