package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

const (
	snapshotPrefix = "snapshot-"
	snapshotSuffix = ".rows"
	tmpSuffix      = ".tmp"
)

// IsSnapshotName reports whether name, which is one of a table's files, is that of a committed
// snapshot.
func IsSnapshotName(name string) bool {
	return strings.HasPrefix(name, snapshotPrefix) && strings.HasSuffix(name, snapshotSuffix)
}

// SnapshotPath is the path of the file of a snapshot in dir.
func SnapshotPath(dir string, id uint64) string { return snapshotDir{path: dir}.file(id) }

// SnapshotIDs returns the IDs of the committed snapshots in dir, ascending, and the names of files
// that an interrupted Snapshot left behind.
func SnapshotIDs(fs FS, dir string) (ids []uint64, leftovers []string, err error) {
	return snapshotDir{fs, dir}.list()
}

// snapshotDir is a directory of snapshot files.
type snapshotDir struct {
	fs   FS
	path string
}

// file returns the name of a snapshot's file. With 20 digits, names sort by id.
func (d snapshotDir) file(id uint64) string {
	return filepath.Join(d.path, fmt.Sprintf("%s%020d%s", snapshotPrefix, id, snapshotSuffix))
}

// list returns the IDs of the committed snapshots, ascending, and the names of files that an
// interrupted Snapshot left behind. A directory that does not exist counts as empty.
func (d snapshotDir) list() (ids []uint64, leftovers []string, err error) {
	if d.path == "" {
		return nil, nil, nil
	}
	names, err := d.fs.List(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sparsetable: list snapshots: %w", err)
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, snapshotPrefix)
		if !ok {
			continue
		}
		if strings.HasSuffix(rest, snapshotSuffix+tmpSuffix) {
			leftovers = append(leftovers, name)
			continue
		}
		digits, ok := strings.CutSuffix(rest, snapshotSuffix)
		if !ok || len(digits) != 20 {
			continue
		}
		id, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue // not a name of file's
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, leftovers, nil
}

// infos reads header and footer of every snapshot. It omits snapshots that are dropped meanwhile.
func (d snapshotDir) infos() ([]contract.SnapshotInfo, error) {
	ids, _, err := d.list()
	if err != nil {
		return nil, err
	}
	infos := make([]contract.SnapshotInfo, 0, len(ids))
	var errs []error
	for _, id := range ids {
		r, err := d.open(id)
		if errors.Is(err, contract.ErrNoSnapshot) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		infos = append(infos, r.info)
		errs = append(errs, r.f.Close())
	}
	return infos, errors.Join(errs...)
}

// missing returns the error for a snapshot that does not exist.
func (d snapshotDir) missing(id uint64) error {
	if d.path == "" {
		return fmt.Errorf("%w: %d, because the table has no directory", contract.ErrNoSnapshot, id)
	}
	return fmt.Errorf("%w: %d in %s", contract.ErrNoSnapshot, id, d.path)
}

// open opens a snapshot for reading; the caller closes the reader's file.
func (d snapshotDir) open(id uint64) (*snapshotReader, error) {
	name := d.file(id)
	f, err := d.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.missing(id)
	}
	if err != nil {
		return nil, fmt.Errorf("sparsetable: open snapshot: %w", err)
	}
	r, err := newSnapshotReader(f, name, id)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// create writes the snapshot id, to which fill adds the rows, and commits it.
func (d snapshotDir) create(id uint64, l layout.Layout, record []byte, fill func(*snapshotWriter) error) (info contract.SnapshotInfo, err error) {
	name := d.file(id)
	tmp := name + tmpSuffix
	f, err := d.fs.Create(tmp)
	if err != nil {
		return info, fmt.Errorf("sparsetable: create snapshot %d: %w", id, err)
	}
	open, renamed := true, false
	defer func() {
		if err == nil {
			return
		}
		err = fmt.Errorf("sparsetable: write snapshot %d: %w", id, err)
		if open {
			err = errors.Join(err, f.Close())
		}
		if !renamed {
			err = errors.Join(err, d.fs.Remove(tmp)) // the disk may be full
		}
	}()
	w, err := newSnapshotWriter(f, l, id, record)
	if err != nil {
		return info, err
	}
	if err := fill(w); err != nil {
		return info, err
	}
	if err := w.finish(); err != nil {
		return info, err
	}
	if err := f.Sync(); err != nil {
		return info, err
	}
	open = false
	if err := f.Close(); err != nil {
		return info, err
	}
	if err := d.fs.Rename(tmp, name); err != nil {
		return info, err
	}
	renamed = true
	if err := d.fs.SyncDir(d.path); err != nil {
		return info, err
	}
	return contract.SnapshotInfo{ID: id, Rows: w.total, Bytes: w.bytes, Layout: l, Record: record}, nil
}

// drop deletes a snapshot durably.
func (d snapshotDir) drop(id uint64) error {
	if d.path == "" {
		return d.missing(id)
	}
	err := d.fs.Remove(d.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return d.missing(id)
	}
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("sparsetable: drop snapshot %d: %w", id, err)
	}
	return nil
}

// removeLeftovers deletes what an interrupted Snapshot left behind.
func (d snapshotDir) removeLeftovers(names []string) error {
	for _, name := range names {
		if err := d.fs.Remove(filepath.Join(d.path, name)); err != nil {
			return fmt.Errorf("sparsetable: remove an unfinished snapshot: %w", err)
		}
	}
	return nil
}
