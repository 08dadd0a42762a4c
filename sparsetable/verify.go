package sparsetable

import (
	"context"
	"errors"
	"fmt"
)

// Fault is something that Verify found wrong.
type Fault struct {
	Snapshot uint64 `json:"snapshot"` // that it was found in; 0: it concerns none in particular
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset"` // in File; -1 where it has none
	Slot     int64  `json:"slot"`   // -1 where it has none
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

// Verification is what Verify has looked at.
type Verification struct {
	Kind      string `json:"kind"`
	Snapshots int    `json:"snapshots"`
	Buckets   int64  `json:"buckets"`    // of all snapshots, each as often as they have it
	Rows      int64  `json:"rows"`       // likewise
	TotalRows int64  `json:"total_rows"` // that there are to be; 0: not known yet
	ReadBytes int64  `json:"read_bytes"` // of buckets
	Faults    int64  `json:"faults"`
}

// Verify reads all of the table that o describes, in every snapshot, or in that
// of o.SnapshotID alone, and calls fault for each fault that it finds, from the
// calling goroutine. Besides what opening checks these are, for KindSSD: the
// checksum of every bucket; that it is the bucket of its slot, and its keys those
// of that slot, each once; that the index has its number of rows, and the filter
// its keys; that buckets do not overlap; that files count what the index refers
// to; that rows written with the snapshot are told from those in buckets; that the
// files of each snapshot are there.
//
// progress, unless it is nil, is called now and then. The table must not be open
// for writing. An error says why it
// could not go on; faults are none.
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

// verifier is one Verify.
type verifier struct {
	opts     Options
	fault    func(Fault)
	progress func(Verification)
	done     Verification
	at       uint64          // snapshot at hand
	named    map[string]bool // files of which a fault was found before they were opened
}

// found reports a fault.
func (v *verifier) found(f Fault) {
	f.Snapshot = v.at
	v.done.Faults++
	v.fault(f)
}

// foundError reports an error as a fault if it is one of the table. Others, and
// those of ctx, are returned.
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
	ids, leftovers, err := snapshotDir{v.opts.FS, v.opts.Dir}.list()
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: none in %s", ErrNoSnapshot, v.opts.Dir)
	}
	for _, name := range leftovers {
		v.opts.Logger.Info("an unfinished snapshot is left over; the next to write the table removes it", "file", name)
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
	// Opening reads all of the file and checks all that there is.
	t, err := openMemory(ctx, o)
	if err != nil {
		return v.foundError(ctx, err)
	}
	v.done.Rows += t.Stats().Rows
	v.done.TotalRows = v.done.Rows // it was read all at once
	v.progress(v.done)
	return t.Close()
}
