package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/deltafile"
)

// ssdSnapshots lists the snapshots of a table on SSD, and reports those of their
// files that are missing or too short.
func (v *verifier) ssdSnapshots(ctx context.Context) (ids []uint64, err error) {
	t := &ssd{directories: directories{opts: v.opts}}
	defer func() { err = errors.Join(err, t.free()) }()
	if err := t.orderDirs(nil); err != nil {
		return nil, err
	}
	if err := t.openDevices(ctx); err != nil {
		return nil, err
	}
	if err := t.openCatalog(ssdStorage{}, 0); err != nil {
		return nil, v.foundError(ctx, tableError(err))
	}
	names := map[string]string{} // the directory of each file
	for _, d := range t.devices {
		list, err := d.List()
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			names[n] = d.Dir()
		}
	}
	all := t.catalog.Snapshots()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: none in %s", ErrNoSnapshot, t.opts.SSD.Dirs[0])
	}
	wanted := map[string]bool{}
	for _, s := range all {
		v.at = s.ID
		for _, f := range s.Files {
			name := bucketfile.FileName(t.tableID, f.ID, f.Incarnation)
			wanted[name] = true
			v.checkFile(t, names, name, f.Bytes)
		}
		for _, d := range s.Deltas {
			wanted[d.Name] = true
			v.checkFile(t, names, d.Name, d.Bytes)
		}
		ids = append(ids, s.ID)
		v.done.TotalRows += s.Rows
	}
	v.at = 0
	prefix := deltafile.Prefix(t.tableID)
	for _, n := range slices.Sorted(keysOf(names)) {
		if strings.HasPrefix(n, prefix) && !wanted[n] {
			v.opts.Logger.Info("no snapshot refers to this file; it is removed when the table is next opened for writing", "file", filepath.Join(names[n], n))
		}
	}
	return ids, nil
}

func keysOf[K comparable, V any](m map[K]V) func(yield func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// checkFile reports a file of a snapshot that is missing or too short.
func (v *verifier) checkFile(t *ssd, names map[string]string, name string, bytes int64) {
	dir, ok := names[name]
	if !ok {
		v.named[name] = true
		v.found(Fault{File: name, Offset: -1, Slot: -1, Missing: true, Reason: "it is in none of the table's directories: " + strings.Join(t.opts.SSD.Dirs, ", ")})
		return
	}
	path := filepath.Join(dir, name)
	faults := v.done.Faults
	defer func() {
		if v.done.Faults > faults {
			v.named[path] = true
		}
	}()
	for _, d := range t.devices {
		if d.Dir() != dir {
			continue
		}
		f, err := d.OpenFile(name)
		if err != nil {
			v.found(Fault{File: path, Offset: -1, Slot: -1, Reason: err.Error()})
			return
		}
		size, err := f.Size()
		if err = errors.Join(err, f.Close()); err != nil {
			v.found(Fault{File: path, Offset: -1, Slot: -1, Reason: err.Error()})
		} else if size < bytes {
			v.found(Fault{File: path, Offset: size, Slot: -1, Reason: fmt.Sprintf("the file ends here, but the snapshot refers to %d bytes of it", bytes)})
		}
		return
	}
}

// ssdSnapshot verifies the snapshot o.SnapshotID.
func (v *verifier) ssdSnapshot(ctx context.Context, o Options) (err error) {
	o.SSD.HotBytes = -1 // the clean rows are read by table, not restored
	tab, err := openSSD(ctx, o, ssdStorage{})
	var bad *CorruptionError
	switch {
	case errors.Is(err, bucketfile.ErrUnknownFile), errors.Is(err, fs.ErrNotExist):
		if len(v.named) == 0 {
			v.found(Fault{Offset: -1, Slot: -1, Reason: err.Error()})
		}
		return nil
	case errors.As(err, &bad) && v.named[filepath.Clean(bad.File)]:
		return nil
	case err != nil:
		return v.foundError(ctx, err)
	}
	t := tab.(*ssd)
	defer func() { err = errors.Join(err, t.Close()) }()
	if v.done.TotalRows == 0 { // this is the only snapshot to be verified
		v.done.TotalRows = t.opened.Rows
	}
	return v.table(ctx, t)
}

// table verifies a table just opened.
func (v *verifier) table(ctx context.Context, t *ssd) (err error) {
	before := v.done.Faults
	// The cache is not used while verifying, so its memory can be borrowed.
	memory, err := t.borrowForVerify(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.giveBack(t)) }()
	rows, err := v.buckets(ctx, t, memory)
	if err != nil {
		return err
	}
	if err := v.outside(ctx, t, memory); err != nil {
		if err := v.foundError(ctx, tableError(err)); err != nil {
			return err
		}
	}
	err = t.checkpoints.EachClean(ctx, t.opened, func(*deltafile.Reader, int) (bool, error) { return true, nil })
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(v.named) > 0: // the missing file was reported
	case errors.Is(err, fs.ErrNotExist):
		v.found(Fault{File: t.opened.Deltas[len(t.opened.Deltas)-1].Name, Offset: -1, Slot: -1, Missing: true, Reason: err.Error()})
	case err != nil:
		if err := v.foundError(ctx, tableError(err)); err != nil {
			return err
		}
	}
	have := rows + t.outside.Fresh()
	v.done.Rows += t.outside.Fresh()
	if v.done.Faults > before {
		return nil // wrong sums would only repeat these faults
	}
	s, err := t.catalog.Snapshot(t.opts.SnapshotID)
	if err != nil {
		return err
	}
	if rows != t.rewrite.stored {
		v.found(Fault{File: t.catalogPath(), Offset: -1, Slot: -1, Reason: fmt.Sprintf("%d rows are in buckets, but the snapshot counts %d", rows, t.rewrite.stored)})
	}
	if have != s.Rows {
		v.found(Fault{File: t.catalogPath(), Offset: -1, Slot: -1, Reason: fmt.Sprintf("there are %d rows, but the snapshot counts %d", have, s.Rows)})
	}
	if err := t.files.CheckLive(t.locations); err != nil {
		for _, e := range unjoin(err) {
			v.found(Fault{File: t.catalogPath(), Offset: -1, Slot: -1, Reason: e.Error()})
		}
	}
	return nil
}

// unjoin returns the errors that errors.Join joined.
func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
