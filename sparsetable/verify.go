package sparsetable

import (
	"context"
	"fmt"

	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/verify"
)

// Fault is something that Verify found wrong.
type Fault = verify.Fault

// Verification says what Verify has checked so far.
type Verification = verify.Verification

// Verify reads all of the table that o describes, in every snapshot, or in that
// of o.SnapshotID alone, and calls fault for each fault that it finds, from the
// calling goroutine. For KindMemory, opening the table checks everything. For
// KindSSD, Verify also checks: the checksum of every bucket; that it is the bucket
// of its slot, and that its keys belong to that slot and occur once; that the
// filter has its keys; that the snapshot counts as many rows as there are; that
// buckets do not overlap; that the live bytes counted for files are those that the
// index refers to; that the delta file says correctly which of its rows buckets
// have, too; that the files of each snapshot exist; and that the catalog and its copies are whole.
//
// progress, unless it is nil, is called now and then. The table must not be open
// for writing. Verify returns an error only where it could not go on; faults that
// it found are not errors.
func Verify(ctx context.Context, o Options, fault func(Fault), progress func(Verification)) (Verification, error) {
	o.ReadOnly = true
	if err := o.Validate(); err != nil {
		return Verification{}, err
	}
	o.ensureDefaults()
	v := &verifier{Report: verify.NewReport(o.Kind, fault, progress), opts: o}
	ids, err := v.snapshots(ctx)
	if err != nil {
		return v.Done, err
	}
	for _, id := range ids {
		if err := v.snapshot(ctx, id); err != nil {
			return v.Done, err
		}
		v.Done.Snapshots++
	}
	return v.Done, nil
}

// verifier is the state of one call of Verify.
type verifier struct {
	*verify.Report
	opts   Options
	copied bool // it was reported that the catalog is lost or damaged, and its copy used
}

// snapshots lists those to be verified.
func (v *verifier) snapshots(ctx context.Context) ([]uint64, error) {
	if v.opts.SnapshotID != 0 {
		return []uint64{v.opts.SnapshotID}, nil
	}
	if v.opts.Kind == KindSSD {
		return v.ssdSnapshots(ctx)
	}
	ids, leftovers, err := memory.SnapshotIDs(v.opts.FS, v.opts.Dir)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: none in %s", ErrNoSnapshot, v.opts.Dir)
	}
	for _, name := range leftovers {
		v.opts.Logger.Info("an unfinished snapshot is left over; it is removed when the table is next opened for writing", "file", name)
	}
	return ids, nil
}

// snapshot verifies one snapshot.
func (v *verifier) snapshot(ctx context.Context, id uint64) (err error) {
	v.At = id
	defer func() { v.At = 0 }()
	o := v.opts
	o.SnapshotID = id
	if o.Kind == KindSSD {
		return v.ssdSnapshot(ctx, o)
	}
	// Opening reads the whole file and checks everything in it.
	t, err := openMemory(ctx, o)
	if err != nil {
		return v.FoundError(ctx, err)
	}
	v.Done.Rows += t.Stats().Rows
	v.Done.TotalRows = v.Done.Rows // it was read all at once
	v.Progress()
	return t.Close()
}
