package outside

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"
	"unsafe"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/slots"
)

// Options are the inputs for an index.
type Options struct {
	Deltas      []catalog.Delta // delta files of the snapshot with dirty rows, the oldest first
	DirOf       func(name string) int
	Devices     []blockio.Device
	Pool        *blockio.Pool // for reads
	RowBytes    int
	Hash        slots.Hasher
	CatalogPath string // for errors
}

// New returns an index without rows. Open must be called before any are added.
func New(o Options) (*Index, error) {
	x := &Index{Options: o, blockBytes: int64(deltafile.BlockBytes(o.RowBytes)), entryBytes: int64(deltafile.EntryBytes + o.RowBytes)}
	x.perBlock = uint32((x.blockBytes - deltafile.HeaderBytes) / x.entryBytes)
	blocks := int64(0)
	x.layers = checkpoint.Layers(o.Deltas)
	slices.Reverse(x.layers)
	for _, d := range slices.Concat(x.layers...) {
		if d.DirtyRows < 0 || d.DirtyRows > d.Bytes/x.entryBytes {
			return nil, &contract.CorruptionError{File: o.CatalogPath, Offset: -1, Reason: fmt.Sprintf("a delta file of snapshot %d has %d dirty rows in %d bytes", d.Snapshot, d.DirtyRows, d.Bytes)}
		}
		f := deltaFile{name: d.Name, dir: o.DirOf(d.Name), first: uint32(blocks)}
		f.path = filepath.Join(o.Devices[f.dir].Dir(), d.Name)
		x.files = append(x.files, f)
		blocks += (d.Bytes + x.blockBytes - 1) / x.blockBytes
	}
	if blocks*int64(x.perBlock) > math.MaxUint32>>1 {
		return nil, fmt.Errorf("%w: it cannot be opened for reading only, because %d rows are not in buckets yet: move them there with `aibox table compact`", contract.ErrUnsupported, x.mostRows())
	}
	return x, nil
}

// mostRows is the number of rows that the files should have.
func (x *Index) mostRows() int64 { return checkpoint.DirtyRows(x.Deltas) }

// NeedBytes is the memory that Open will take.
func (x *Index) NeedBytes() int64 { return bytesOf(x.mostRows()) }

// Open allocates the memory of the index and opens the files.
func (x *Index) Open() (err error) {
	most := x.mostRows()
	if x.memory, err = offheap.Map(int(bytesOf(most))); err != nil {
		return err
	}
	x.rows = unsafe.Slice((*row)(unsafe.Pointer(unsafe.SliceData(x.memory))), most)[:0]
	x.starts = offheap.Uint32s(x.memory[most*rowBytes:])
	x.shift = uint(64 - startBits(most))
	for i := range x.files {
		f := &x.files[i]
		if f.file, err = x.Devices[f.dir].OpenFile(f.name); err != nil {
			return fmt.Errorf("sparsetable: open the rows of the snapshot: %w", err)
		}
	}
	return nil
}

// Each calls fn for the blocks of dirty rows of all files, which it reads through store, the newest
// layer first. Row i of a block is outside of buckets if Current reports so.
func (x *Index) Each(ctx context.Context, store *checkpoint.Store, fn func(file int, r *deltafile.Reader, rows int) error) error {
	if x == nil {
		return nil
	}
	first := 0
	for _, layer := range x.layers {
		if err := store.EachDirty(ctx, layer, func(i int, r *deltafile.Reader, rows int) error { return fn(first+i, r, rows) }); err != nil {
			return err
		}
		first += len(layer)
	}
	return nil
}

// Add adds row i, whose hash is given, of the block that r has read from a file.
func (x *Index) Add(file int, r *deltafile.Reader, i int, hash uint64) error {
	if len(x.rows) == cap(x.rows) {
		return r.Corrupt(0, "it has more dirty rows than it should have")
	}
	_, info, _ := r.Entry(i)
	x.rows = append(x.rows, row{hash: hash, place: x.placeOf(file, r.At(), i, info), sum: crc32.Checksum(r.EntryOf(i), castagnoli)})
	return nil
}

// Sort prepares the added rows for Find. Of rows with the same key it keeps the one of the newest
// file.
func (x *Index) Sort() error {
	slices.SortFunc(x.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place, b.place))
	})
	n := 0
	for i, r := range x.rows {
		if i > 0 && r.hash == x.rows[n-1].hash {
			if f := x.fileOf(r.place); f == x.fileOf(x.rows[n-1].place) {
				return &contract.CorruptionError{File: f.path, Offset: x.blockOf(r.place), Reason: "a key occurs twice"}
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

// Current reports whether row i of the block that r has read is the latest version, and returns the
// row's number in the index.
func (x *Index) Current(file int, r *deltafile.Reader, i int) (at int, ok bool) {
	key, info, _ := r.Entry(i)
	at, ok = x.Find(x.Hash.Of(key))
	return at, ok && x.rows[at].place == x.placeOf(file, r.At(), i, info)
}
