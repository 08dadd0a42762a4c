package sparsetable

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/memory"
)

// Fault is something that Verify found wrong.
type Fault struct {
	Snapshot uint64 `json:"snapshot"` // the snapshot in which it was found; 0: no particular one
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset"` // in File; -1: the fault has no single place
	Slot     int64  `json:"slot"`   // the slot whose bucket is at fault; -1: none
	Reason   string `json:"reason"`
	// Missing: the file is in none of the directories that were given.
	Missing bool `json:"-"`
}

func (f Fault) String() string {
	text := f.Reason
	if f.Slot >= 0 {
		text = fmt.Sprintf("slot %d: %s", f.Slot, text)
	}
	switch {
	case f.File != "" && f.Offset >= 0:
		text = fmt.Sprintf("%s at offset %d: %s", f.File, f.Offset, text)
	case f.File != "":
		text = fmt.Sprintf("%s: %s", f.File, text)
	}
	if f.Snapshot != 0 {
		text = fmt.Sprintf("snapshot %d: %s", f.Snapshot, text)
	}
	return text
}

// Verification says what Verify has checked so far.
type Verification struct {
	Kind      string `json:"kind"`
	Snapshots int    `json:"snapshots"`
	Buckets   int64  `json:"buckets"`    // in all snapshots; a bucket counts once for each snapshot that has it
	Rows      int64  `json:"rows"`       // counted in the same way
	TotalRows int64  `json:"total_rows"` // rows to be verified in all; 0: not known yet
	ReadBytes int64  `json:"read_bytes"` // of buckets
	Faults    int64  `json:"faults"`
}

// Verify reads all of the table that o describes, in every snapshot, or in that
// of o.SnapshotID alone, and calls fault for each fault that it finds, from the
// calling goroutine. For KindMemory, opening the table checks everything. For
// KindSSD, Verify also checks: the checksum of every bucket; that it is the bucket
// of its slot, and that its keys belong to that slot and occur once; that the
// filter has its keys; that the snapshot counts as many rows as there are; that
// buckets do not overlap; that the live bytes counted for files are those that the
// index refers to; that the delta file says correctly which of its rows buckets
// have, too; and that the files of each snapshot exist.
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
	if progress == nil {
		progress = func(Verification) {}
	}
	v := &verifier{opts: o, fault: fault, progress: progress, named: map[string]bool{}}
	v.done.Kind = o.Kind
	ids, err := v.snapshots(ctx)
	if err != nil {
		return v.done, err
	}
	for _, id := range ids {
		if err := v.snapshot(ctx, id); err != nil {
			return v.done, err
		}
		v.done.Snapshots++
	}
	return v.done, nil
}

// verifier is the state of one call of Verify.
type verifier struct {
	opts     Options
	fault    func(Fault)
	progress func(Verification)
	done     Verification
	at       uint64          // the snapshot that is being verified
	named    map[string]bool // files for which a fault was reported before the table was opened
}

// found reports a fault.
func (v *verifier) found(f Fault) {
	f.Snapshot = v.at
	v.done.Faults++
	v.fault(f)
}

// foundError reports an error as a fault if it is about damage of the table. It
// returns all other errors, and any error after ctx has ended.
func (v *verifier) foundError(ctx context.Context, err error) error {
	var bad *CorruptionError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.As(err, &bad):
		f := Fault{File: bad.File, Offset: bad.Offset, Slot: -1, Reason: bad.Reason}
		if bad.Bucket {
			f.Slot = int64(bad.Slot)
		}
		v.found(f)
		return nil
	}
	return err
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
	v.at = id
	defer func() { v.at = 0 }()
	o := v.opts
	o.SnapshotID = id
	if o.Kind == KindSSD {
		return v.ssdSnapshot(ctx, o)
	}
	// Opening reads the whole file and checks everything in it.
	t, err := openMemory(ctx, o)
	if err != nil {
		return v.foundError(ctx, err)
	}
	v.done.Rows += t.Stats().Rows
	v.done.TotalRows = v.done.Rows // it was read all at once
	v.progress(v.done)
	return t.Close()
}
