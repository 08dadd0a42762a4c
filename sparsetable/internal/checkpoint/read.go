package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
)

// readAhead is the number of blocks of dirty rows that are read ahead: enough for a device to read
// at its full rate while nothing else is read. If several devices are read, each has fewer.
const readAhead = 8

// EachDirty reads the blocks of dirty rows of the files of one instant, from all devices at once,
// and calls fn for each block, with the number of the file and the number of the block's rows.
func (c *Store) EachDirty(ctx context.Context, layer Layer, fn func(i int, r *deltafile.Reader, rows int) error) error {
	parts := make([]deltafile.Part, len(layer))
	for i, d := range layer {
		if d.DirtyBytes < 0 || d.DirtyBytes > d.Bytes {
			return &deltafile.CorruptionError{File: c.CatalogPath, Offset: -1, Reason: fmt.Sprintf("a delta file of snapshot %d has %d of %d bytes with dirty rows", d.Snapshot, d.DirtyBytes, d.Bytes)}
		}
		parts[i] = deltafile.Part{Dir: c.DirOf(d.Name), Name: d.Name, To: d.DirtyBytes, Kind: deltafile.Dirty, Rows: d.DirtyRows}
	}
	return c.eachBlock(ctx, parts, 2*readAhead, func(i int, r *deltafile.Reader, rows int) (bool, error) { return true, fn(i, r, rows) })
}

// EachClean reads the blocks of clean rows of a snapshot's newest files and calls fn for each, with
// the number of its rows, until fn returns false.
func (c *Store) EachClean(ctx context.Context, s catalog.Snapshot, fn func(r *deltafile.Reader, rows int) (more bool, err error)) error {
	var parts []deltafile.Part
	for _, d := range Newest(s.Deltas) {
		if d.DirtyBytes < d.Bytes {
			parts = append(parts, deltafile.Part{Dir: c.DirOf(d.Name), Name: d.Name, From: d.DirtyBytes, To: d.Bytes, Kind: deltafile.Clean, Rows: d.Rows - d.DirtyRows})
		}
	}
	return c.eachBlock(ctx, parts, 2*deltafile.PoolBlocks, func(_ int, r *deltafile.Reader, rows int) (bool, error) { return fn(r, rows) })
}

// eachBlock reads parts of files, as many at a time as the guaranteed memory allows, with about
// half as many blocks ahead.
func (c *Store) eachBlock(ctx context.Context, parts []deltafile.Part, ahead int, fn func(i int, r *deltafile.Reader, rows int) (more bool, err error)) error {
	dirs := len(c.Deltas.Devices)
	together := deltafile.BlocksNeeded(dirs) - deltafile.PoolBlocks*dirs
	first, more := 0, true
	for some := range slices.Chunk(parts, together) {
		err := c.eachBlockOf(ctx, some, max(1, together/len(some)), ahead/(len(some)+1), func(i int, r *deltafile.Reader, rows int) (_ bool, err error) {
			more, err = fn(first+i, r, rows)
			return more, err
		})
		if err != nil || !more {
			return err
		}
		first += len(some)
	}
	return nil
}

func (c *Store) eachBlockOf(ctx context.Context, parts []deltafile.Part, own, blocks int, fn func(i int, r *deltafile.Reader, rows int) (more bool, err error)) (err error) {
	var readers []*deltafile.Reader
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, p := range parts {
		r, err := c.Deltas.NewReader(p, own, max(own, blocks))
		if err != nil {
			return err
		}
		readers = append(readers, r)
	}
	return deltafile.EachBlock(ctx, readers, func(i, rows int) (bool, error) { return fn(i, readers[i], rows) })
}
