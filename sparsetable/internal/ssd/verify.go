package ssd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/verify"
)

// Verify verifies the snapshot o.SnapshotID of a table, or all its snapshots if that is 0, and
// reports to r. o is valid, and has a Logger.
func Verify(ctx context.Context, o Options, r *verify.Report) error {
	o.setDefaults()
	v := &verifier{Report: r, opts: o}
	ids := []uint64{o.SnapshotID}
	if o.SnapshotID == 0 {
		var err error
		if ids, err = v.snapshots(ctx); err != nil {
			return err
		}
	}
	return r.Each(ids, func(id uint64) error { return v.snapshot(ctx, id) })
}

// verifier is the state of one call of Verify.
type verifier struct {
	*verify.Report
	opts   Options
	copied bool // the use of a copy for a lost or damaged catalog was reported
}

// snapshots returns the IDs of the snapshots, and reports files of theirs that are missing or too
// short.
func (v *verifier) snapshots(ctx context.Context) (ids []uint64, err error) {
	t := &Table{opts: v.opts, dirs: v.opts.Directories()}
	defer func() { err = errors.Join(err, t.free()) }()
	if err := t.dirs.Order(nil); err != nil {
		return nil, err
	}
	if err := t.dirs.OpenDevices(ctx); err != nil {
		return nil, err
	}
	if err := t.openCatalog(media{}, 0); err != nil {
		return nil, v.FoundError(ctx, apierr.Of(err))
	}
	all := t.catalog.Snapshots()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: none in %s", contract.ErrNoSnapshot, t.dirs.Names[0])
	}
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	v.catalog(t)
	bad := catalogcopy.Damaged(t.dirs.Names[1:], t.catalog.Format().TableID)
	for _, dir := range slices.Sorted(maps.Keys(bad)) {
		v.Found(verify.Fault{File: dir, Offset: -1, Slot: -1, Reason: fmt.Sprintf("the copy of the table's catalog is damaged: delete it; a new copy is made when the table is next opened for writing: %v", bad[dir])})
	}
	return ids, v.Files(t.dirs.Devices, t.dirs.Names, t.tableID, all, t.opts.Logger)
}

// snapshot verifies one snapshot.
func (v *verifier) snapshot(ctx context.Context, id uint64) (err error) {
	o := v.opts
	o.SnapshotID = id
	o.HotBytes = -1 // the clean rows are read by table, not restored
	t, err := Open(ctx, o)
	var bad *contract.CorruptionError
	switch {
	case errors.Is(err, bucketfile.ErrUnknownFile), errors.Is(err, fs.ErrNotExist):
		if !v.NamedAny() {
			v.Found(verify.Fault{Offset: -1, Slot: -1, Reason: err.Error()})
		}
		return nil
	case errors.As(err, &bad) && v.Named(bad.File):
		return nil
	case err != nil:
		return v.FoundError(ctx, err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if v.Done.TotalRows == 0 { // this is the only snapshot to be verified
		v.Done.TotalRows = t.opened.Rows
	}
	return v.table(ctx, t)
}

// catalog reports, once, that the catalog is unusable and its copy was read.
func (v *verifier) catalog(t *Table) {
	if path, at := t.dirs.CatalogPath(), t.catalog.Dir(); at != path && !v.copied {
		v.copied = true
		v.Found(verify.Fault{File: path, Offset: -1, Slot: -1, Reason: "the table's catalog is lost or damaged: it is restored from its copy in " + at + " when the table is next opened for writing"})
	}
}

// table verifies a table that was just opened.
func (v *verifier) table(ctx context.Context, t *Table) error {
	v.catalog(t)
	open := verify.Table{
		Files: t.files, Index: t.index, Outside: t.outside, Checkpoints: t.checkpoints, Opened: t.opened, Stored: t.rewrite.stored,
		Hash: t.hash, ReadBytes: t.plan.ReadBytes, CatalogPath: t.dirs.CatalogPath(),
	}
	s, err := t.catalog.Snapshot(t.opts.SnapshotID)
	if err != nil {
		return err
	}
	open.Rows = s.Rows
	// The cache is not used while verifying, so its memory can be borrowed.
	most, least := open.Memory()
	bytes, err := t.borrowUpTo(ctx, most, least)
	if err != nil {
		return err
	}
	if bytes == 0 {
		return t.overBudget("verifying", t.aLittleMore())
	}
	defer t.giveBack(bytes)
	return open.Verify(ctx, v.Report, bytes)
}
