package sparsetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/slots"
)

// outside is the index of the rows of a snapshot that are outside of buckets: those
// that were dirty when the snapshot was fixed. Only a table that is opened for
// reading has it. Such a table cannot write these rows to buckets, so they stay in
// the delta file, and are read from there when they are pulled. The index has a
// hash, a place and a checksum of each row, sorted by hash; it takes 16.3 to 16.6
// bytes of memory a row.
//
// The hash function is a bijection: only equal keys have equal hashes. So the index
// tells whether a key is in the file, without a read.
//
// It does not change once the table is open.
type outside struct {
	file  blockio.File
	path  string
	fresh int64 // rows that are in no bucket
	hash  slots.Hasher

	memory []byte
	rows   []outsideRow // ascending by hash
	starts []uint32     // starts[h>>shift] is the number of the first row whose hash begins with these bits or greater ones
	shift  uint

	perBlock   uint32 // rows of a full block
	blockBytes int64
	entryBytes int64

	// The fields that follow are used by a Pull, under changing.
	done    blockio.Completions
	arrived []*blockio.Read
	free    []*outsideRead
}

// outsideRow is one row of the file.
type outsideRow struct {
	hash  uint64
	place uint32 // number of its block times the rows of a full block, plus its number in the block
	sum   uint32 // CRC-32C of its entry
}

const outsideRowBytes = int64(unsafe.Sizeof(outsideRow{}))

// startBits is the binary logarithm of the number of starts for that many rows, so
// that each stands for 8 to 16 rows.
func startBits(rows int64) int { return max(0, bits.Len64(uint64(rows))-4) }

// outsideBytes is the memory that the index of that many rows takes.
func outsideBytes(rows int64) int64 {
	if rows == 0 {
		return 0
	}
	return rows*outsideRowBytes + 4*(1<<startBits(rows)+1)
}

// restoreOutside makes the index of the rows outside of buckets, and fills the
// cache with them as far as there is room, those used most first. They are clean in
// the cache, because they can be read again.
func (t *ssd) restoreOutside(ctx context.Context, s catalog.Snapshot) error {
	if len(s.Deltas) == 0 || s.Counters[counterDirtyBytes] == 0 && s.Counters[counterDirtyRows] == 0 {
		return nil
	}
	x, err := t.newOutside(ctx, s)
	if err != nil {
		return err
	}
	t.outside = x
	full := t.opts.SSD.HotBytes < 0
	var b restoreBatch
	n := 0
	err = t.eachDirty(ctx, s, func(r *deltaReader, rows int) error {
		if n+rows > len(x.rows) {
			return r.corrupt(0, "it has more than %d dirty rows", len(x.rows))
		}
		first := uint32((r.at-1)/x.blockBytes) * x.perBlock
		for i := range rows {
			key, info, _ := r.entry(i)
			x.rows[n] = outsideRow{hash: t.hash.Of(key), place: first + uint32(i), sum: crc32.Checksum(r.entryOf(i), castagnoli)}
			if info&1 == 0 {
				x.fresh++
			}
			n++
		}
		if full {
			return nil
		}
		t.batchOfBlock(r, 0, rows)
		got, noRoom, err := t.cacheBatch(&b)
		t.mu.Lock()
		t.mu.stats.RestoredRows += int64(got)
		t.mu.Unlock()
		full = noRoom
		return err
	})
	if err != nil {
		return err
	}
	return x.sort()
}

// newOutside opens the file and takes memory from the cache for the index.
func (t *ssd) newOutside(ctx context.Context, s catalog.Snapshot) (*outside, error) {
	d, rows := s.Deltas[0], s.Counters[counterDirtyRows]
	x := &outside{hash: t.hash, blockBytes: int64(deltaBlockBytes(t.layout)), entryBytes: int64(deltaEntryBytes + t.layout.Bytes())}
	x.perBlock = uint32((x.blockBytes - deltaHeaderBytes) / x.entryBytes)
	if rows < 0 || rows > d.Bytes/x.entryBytes {
		return nil, &CorruptionError{File: t.catalogPath(), Offset: -1, Reason: fmt.Sprintf("snapshot %d has %d dirty rows in %d bytes", s.ID, rows, d.Bytes)}
	}
	if blocks := (d.Bytes + x.blockBytes - 1) / x.blockBytes; blocks*int64(x.perBlock) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: it cannot be opened for reading only, because %d rows are not in buckets yet: open it for writing, call Flush and take a snapshot", ErrUnsupported, rows)
	}
	bytes := outsideBytes(rows)
	err := t.reserveNow(ctx, bytes)
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
	if bytes > 0 {
		if x.memory, err = offheap.Map(int(bytes)); err != nil {
			return nil, err
		}
		x.rows = unsafe.Slice((*outsideRow)(unsafe.Pointer(unsafe.SliceData(x.memory))), rows)
		x.starts = offheap.Uint32s(x.memory[rows*outsideRowBytes:])
		x.shift = uint(64 - startBits(rows))
	}
	dev := t.devices[0]
	if x.file, err = dev.OpenFile(d.Name); err != nil {
		return nil, errors.Join(fmt.Errorf("sparsetable: open the rows of the snapshot: %w", err), x.close())
	}
	x.path = pathOn(dev, d.Name)
	return x, nil
}

// sort makes rows ready for find.
func (x *outside) sort() error {
	slices.SortFunc(x.rows, func(a, b outsideRow) int { return cmp.Compare(a.hash, b.hash) })
	at := 0
	for i := range x.starts {
		for at < len(x.rows) && x.rows[at].hash>>x.shift < uint64(i) {
			at++
		}
		x.starts[i] = uint32(at)
	}
	for i := 1; i < len(x.rows); i++ {
		if x.rows[i].hash == x.rows[i-1].hash {
			return &CorruptionError{File: x.path, Offset: x.blockOf(x.rows[i].place), Reason: "a key is there twice"}
		}
	}
	return nil
}

// find returns the number of the row of a hash.
func (x *outside) find(hash uint64) (i int, ok bool) {
	if x == nil || len(x.rows) == 0 {
		return 0, false
	}
	h := hash >> x.shift // 0 where there is only one start
	from, to := x.starts[h], x.starts[h+1]
	for from < to {
		mid := (from + to) / 2
		if x.rows[mid].hash < hash {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return int(from), int(from) < len(x.rows) && x.rows[from].hash == hash
}

// has reports whether the row of a key is outside of buckets. For a nil index it
// returns false.
func (x *outside) has(key uint64) bool {
	return x != nil && x.hasHash(x.hash.Of(key))
}

func (x *outside) hasHash(hash uint64) bool {
	_, ok := x.find(hash)
	return ok
}

// count is the number of rows that are in no bucket.
func (x *outside) count() int64 {
	if x == nil {
		return 0
	}
	return x.fresh
}

// bytes is the memory that the index takes.
func (x *outside) bytes() int64 {
	if x == nil {
		return 0
	}
	return int64(len(x.memory))
}

// blockOf is the offset of the block that a row is in, offset that of its entry.
func (x *outside) blockOf(place uint32) int64 { return int64(place/x.perBlock) * x.blockBytes }

func (x *outside) offset(place uint32) int64 {
	return x.blockOf(place) + deltaHeaderBytes + int64(place%x.perBlock)*x.entryBytes
}

// close closes the file and frees the memory. REQUIRES: no read is in flight.
func (x *outside) close() error {
	if x == nil {
		return nil
	}
	var errs []error
	if x.file != nil {
		errs = append(errs, x.file.Close())
	}
	if x.memory != nil {
		errs = append(errs, offheap.Unmap(x.memory))
	}
	*x = outside{}
	return errors.Join(errs...)
}
