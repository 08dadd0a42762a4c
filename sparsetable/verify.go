package sparsetable

import (
	"context"
	"fmt"

	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/internal/verify"
)

// Fault is a fault that Verify found.
type Fault = verify.Fault

// Verification says what Verify has checked so far.
type Verification = verify.Verification

// Verify reads the whole table that o describes, in every snapshot or only in that of o.SnapshotID,
// and calls fault for each fault that it finds, from the calling goroutine. For KindMemory, opening
// the table checks everything. For KindSSD, Verify checks
//
//   - the checksum of every bucket;
//   - that it is the bucket of its slot, that its keys belong to that slot and occur once, and that
//     the filter has them;
//   - that the snapshot's number of rows is right;
//   - that buckets do not overlap;
//   - that the live bytes counted for files are those that the index refers to;
//   - that the delta file says correctly which of its rows are also in buckets;
//   - that the files of each snapshot exist;
//   - that the catalog and its copies are whole.
//
// progress, unless it is nil, is called now and then. The table must not be open for writing.
// Verify returns an error only if it could not finish; the faults that it found are not errors.
func Verify(ctx context.Context, o Options, fault func(Fault), progress func(Verification)) (Verification, error) {
	o.ReadOnly = true
	if err := o.Validate(); err != nil {
		return Verification{}, err
	}
	o.ensureDefaults()
	r := verify.NewReport(o.Kind, fault, progress)
	var err error
	if o.Kind == KindSSD {
		err = ssd.Verify(ctx, o.onSSD(), r)
	} else {
		err = verifyMemory(ctx, o, r)
	}
	return r.Done, err
}

// verifyMemory is Verify of a table of KindMemory: opening a snapshot reads the whole file and
// checks everything in it.
func verifyMemory(ctx context.Context, o Options, r *verify.Report) error {
	ids := []uint64{o.SnapshotID}
	if o.SnapshotID == 0 {
		var leftovers []string
		var err error
		if ids, leftovers, err = memory.SnapshotIDs(o.FS, o.Dir); err != nil {
			return err
		}
		if len(ids) == 0 {
			return fmt.Errorf("%w: none in %s", ErrNoSnapshot, o.Dir)
		}
		for _, name := range leftovers {
			o.Logger.Info("an unfinished snapshot is left over; it is removed when the table is next opened for writing", "file", name)
		}
	}
	return r.Each(ids, func(id uint64) error {
		o.SnapshotID = id
		t, err := openMemory(ctx, o)
		if err != nil {
			return r.FoundError(ctx, err)
		}
		r.Done.Rows += t.Stats().Rows
		r.Done.TotalRows = r.Done.Rows // it was read all at once
		r.Progress()
		return t.Close()
	})
}
