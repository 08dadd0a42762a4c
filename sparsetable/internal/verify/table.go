package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/slots"
)

// Table is a table on SSD that was opened for reading only and has no other users.
type Table struct {
	Files       *bucketfile.Set
	Index       *slots.Index
	Outside     *outside.Index
	Checkpoints *checkpoint.Store
	Hash        slots.Hasher
	ReadBytes   int64 // for reads in flight
	CatalogPath string

	Opened catalog.Snapshot // the snapshot that it was opened with
	Rows   int64            // number of rows in the snapshot's record
	Stored int64            // those of them in buckets
}

// Verify verifies everything in the table. It takes that many bytes of memory, see Memory.
func (t *Table) Verify(ctx context.Context, v *Report, bytes int64) (err error) {
	before := v.Done.Faults
	m, err := t.newMemory(bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, offheap.Unmap(m.memory)) }()
	rows, err := t.buckets(ctx, v, m)
	if err != nil {
		return err
	}
	if err := t.outside(ctx, v, m); err != nil {
		if err := v.FoundError(ctx, apierr.Of(err)); err != nil {
			return err
		}
	}
	err = t.Checkpoints.EachClean(ctx, t.Opened, func(*deltafile.Reader, int) (bool, error) { return true, nil })
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.NamedAny(): // the missing file was reported
	case errors.Is(err, fs.ErrNotExist):
		v.Found(Fault{File: t.Opened.Deltas[len(t.Opened.Deltas)-1].Name, Offset: -1, Slot: -1, Missing: true, Reason: err.Error()})
	case err != nil:
		if err := v.FoundError(ctx, apierr.Of(err)); err != nil {
			return err
		}
	}
	have := rows + t.Outside.Fresh()
	v.Done.Rows += t.Outside.Fresh()
	if v.Done.Faults > before {
		return nil // wrong sums would only repeat these faults
	}
	if rows != t.Stored {
		v.Found(Fault{File: t.CatalogPath, Offset: -1, Slot: -1, Reason: fmt.Sprintf("%d rows are in buckets, but the snapshot counts %d", rows, t.Stored)})
	}
	if have != t.Rows {
		v.Found(Fault{File: t.CatalogPath, Offset: -1, Slot: -1, Reason: fmt.Sprintf("there are %d rows, but the snapshot counts %d", have, t.Rows)})
	}
	if err := t.Files.CheckLive(Locations(t.Index)); err != nil {
		for _, e := range joinedErrors(err) {
			v.Found(Fault{File: t.CatalogPath, Offset: -1, Slot: -1, Reason: e.Error()})
		}
	}
	return nil
}

// Locations yields the locations of all buckets.
func Locations(x *slots.Index) iter.Seq[bucketfile.Location] {
	return func(yield func(bucketfile.Location) bool) {
		for s := range x.Slots() {
			if l := bucketfile.Location(x.Location(s)); l != 0 && !yield(l) {
				return
			}
		}
	}
}

// joinedErrors returns the errors that errors.Join joined.
func joinedErrors(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
