package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
)

// readAhead is how many blocks of dirty rows are read ahead: enough for a device to read
// at its full rate while nothing else is read.
const readAhead = 8

// EachDirty reads the blocks of dirty rows of a file and calls fn for each, with the
// number of its rows.
func (c *Store) EachDirty(ctx context.Context, d *catalog.Delta, fn func(r *deltafile.Reader, rows int) error) (err error) {
	if d.DirtyBytes < 0 || d.DirtyBytes > d.Bytes {
		return &deltafile.CorruptionError{File: c.CatalogPath, Offset: -1, Reason: fmt.Sprintf("a delta file of snapshot %d has %d of %d bytes with dirty rows", d.Snapshot, d.DirtyBytes, d.Bytes)}
	}
	r, err := c.Deltas.NewReader(d.Name, 0, d.DirtyBytes, deltafile.Dirty, readAhead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.EachBlock(ctx, d.DirtyRows, func(rows int) (bool, error) { return true, fn(r, rows) })
}

// EachClean reads the blocks of clean rows of a snapshot's newest file and calls fn for
// each, with the number of its rows, as long as fn returns true.
func (c *Store) EachClean(ctx context.Context, s catalog.Snapshot, fn func(r *deltafile.Reader, rows int) (more bool, err error)) (err error) {
	if len(s.Deltas) == 0 {
		return nil
	}
	d := s.Deltas[len(s.Deltas)-1]
	if d.DirtyBytes == d.Bytes {
		return nil
	}
	r, err := c.Deltas.NewReader(d.Name, d.DirtyBytes, d.Bytes, deltafile.Clean, deltafile.PoolBlocks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.EachBlock(ctx, d.Rows-d.DirtyRows, func(rows int) (bool, error) { return fn(r, rows) })
}
