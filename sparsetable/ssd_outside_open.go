package sparsetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"
	"unsafe"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
)

// restoreOutside makes the index of the rows outside of buckets, and fills the
// cache with them as far as there is room, those used most first. They are clean in
// the cache, because they can be read again.
func (t *ssd) restoreOutside(ctx context.Context, s catalog.Snapshot) error {
	list := checkpoint.WithDirtyRows(s.Deltas)
	if len(list) == 0 {
		return nil
	}
	x, err := t.newOutside(ctx, s, list)
	if err != nil {
		return err
	}
	t.outside = x
	full := t.opts.SSD.HotBytes < 0
	var b restoreBatch
	n := 0
	err = t.eachOutside(ctx, func(file int, r *deltafile.Reader, rows int) error {
		d := x.instant(file)
		for i := range rows {
			key, info, _ := r.Entry(i)
			h := t.hash.Of(key)
			if !t.checkpoints.WrittenBefore(d, t.bucketOf(h)) {
				continue
			}
			if n == len(x.rows) {
				return r.Corrupt(0, "it has more dirty rows than it should have")
			}
			x.rows[n] = outsideRow{hash: h, place: x.placeOf(file, r.At(), i, info), sum: crc32.Checksum(r.EntryOf(i), crcTable)}
			n++
		}
		if full {
			return nil
		}
		t.batchOfBlock(r, 0, rows)
		t.keepOfBatch(&b, func(_ uint64, loc bucketfile.Location) bool { return t.checkpoints.WrittenBefore(d, loc) })
		got, noRoom, err := t.cacheBatch(&b)
		t.mu.Lock()
		t.mu.stats.RestoredRows += int64(got)
		t.mu.Unlock()
		full = noRoom // then none is added any more, so that no row is taken from an older file
		return err
	})
	if err != nil {
		return err
	}
	x.rows = x.rows[:n]
	return x.sort()
}

// bucketOf is where the bucket of a hash's slot lies. REQUIRES: indexMu is held, or the
// table was opened for reading only.
func (t *ssd) bucketOf(hash uint64) bucketfile.Location {
	return bucketfile.Location(t.index.Location(t.index.Slot(hash)))
}

// eachOutside calls fn for the blocks of dirty rows of all files, those of the newest layer
// first. A row of it is outside of buckets if current says so.
func (t *ssd) eachOutside(ctx context.Context, fn func(file int, r *deltafile.Reader, rows int) error) error {
	if t.outside == nil {
		return nil
	}
	first := 0
	for _, layer := range t.outside.layers {
		if err := t.checkpoints.EachDirty(ctx, layer, func(i int, r *deltafile.Reader, rows int) error { return fn(first+i, r, rows) }); err != nil {
			return err
		}
		first += len(layer)
	}
	return nil
}

// current reports whether row i of the block that r has read is the latest version, and
// returns the number of the row in the index.
func (x *outside) current(file int, r *deltafile.Reader, i int) (at int, ok bool) {
	key, info, _ := r.Entry(i)
	at, ok = x.find(x.hash.Of(key))
	return at, ok && x.rows[at].place == x.placeOf(file, r.At(), i, info)
}

// newOutside opens the files and takes memory from the cache for the index.
func (t *ssd) newOutside(ctx context.Context, s catalog.Snapshot, list []catalog.Delta) (x *outside, err error) {
	rows := checkpoint.DirtyRows(list)
	x = &outside{hash: t.hash, blockBytes: int64(deltafile.BlockBytes(t.layout.Bytes())), entryBytes: int64(deltafile.EntryBytes + t.layout.Bytes())}
	x.perBlock = uint32((x.blockBytes - deltafile.HeaderBytes) / x.entryBytes)
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	blocks := int64(0)
	x.layers = checkpoint.Layers(list)
	slices.Reverse(x.layers)
	for _, d := range slices.Concat(x.layers...) {
		if d.DirtyRows < 0 || d.DirtyRows > d.Bytes/x.entryBytes {
			return nil, &CorruptionError{File: t.catalogPath(), Offset: -1, Reason: fmt.Sprintf("a delta file of snapshot %d has %d dirty rows in %d bytes", d.Snapshot, d.DirtyRows, d.Bytes)}
		}
		f := outsideFile{name: d.Name, dir: t.checkpoints.DirOf(d.Name), first: uint32(blocks)}
		f.path = filepath.Join(t.devices[f.dir].Dir(), d.Name)
		x.files = append(x.files, f)
		blocks += (d.Bytes + x.blockBytes - 1) / x.blockBytes
	}
	if blocks*int64(x.perBlock) > math.MaxUint32>>1 {
		return nil, fmt.Errorf("%w: it cannot be opened for reading only, because %d rows are not in buckets yet: open it for writing, call Flush and take a snapshot", ErrUnsupported, rows)
	}
	bytes := outsideBytes(rows)
	err = t.reserveNow(ctx, bytes)
	for errors.Is(err, errNoVictims) && t.economize(0) {
		err = t.reserveNow(ctx, bytes)
	}
	if errors.Is(err, errNoVictims) {
		need := smallestSSD(t.layout, t.unit, t.opts.SSD, load{rows: s.Rows, slots: int64(t.index.Slots()), other: bytes})
		return nil, t.overBudget(fmt.Sprintf("the index of %d rows outside of buckets", rows), max(need, t.aLittleMore()))
	}
	if err != nil {
		return nil, err
	}
	if x.memory, err = offheap.Map(int(bytes)); err != nil {
		return nil, err
	}
	x.rows = unsafe.Slice((*outsideRow)(unsafe.Pointer(unsafe.SliceData(x.memory))), rows)
	x.starts = offheap.Uint32s(x.memory[rows*outsideRowBytes:])
	x.shift = uint(64 - startBits(rows))
	for i := range x.files {
		f := &x.files[i]
		if f.file, err = t.devices[f.dir].OpenFile(f.name); err != nil {
			return nil, fmt.Errorf("sparsetable: open the rows of the snapshot: %w", err)
		}
	}
	return x, nil
}

// sort makes rows ready for find. Of rows with the same key it keeps the one of the newest
// file.
func (x *outside) sort() error {
	slices.SortFunc(x.rows, func(a, b outsideRow) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place, b.place))
	})
	n := 0
	for i, r := range x.rows {
		if i > 0 && r.hash == x.rows[n-1].hash {
			if f := x.fileOf(r.place); f == x.fileOf(x.rows[n-1].place) {
				return &CorruptionError{File: f.path, Offset: x.blockOf(r.place), Reason: "a key is there twice"}
			}
			continue
		}
		x.rows[n] = r
		n++
		x.fresh += int64(r.place & 1)
	}
	x.rows = x.rows[:n]
	at := 0
	for i := range x.starts {
		for at < len(x.rows) && x.rows[at].hash>>x.shift < uint64(i) {
			at++
		}
		x.starts[i] = uint32(at)
	}
	return nil
}
