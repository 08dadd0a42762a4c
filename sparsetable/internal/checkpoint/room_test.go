package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

const (
	testTable = 0x0123456789abcdef
	rowWords  = 2 // of a row: its value, and how often it was trained
	tableSlot = 16
	pageSlots = 4
	stored    = rowcache.Mark2
)

// room is the smallest table that has snapshots: a cache, an index with a fixed number of slots,
// bucket files, a catalog with its copies, and the Store under test. It uses these in the same way
// as sparsetable does, and has nothing else.
type room struct {
	t       testing.TB
	disk    *disk
	catalog *catalog.Catalog
	files   *bucketfile.Set
	cache   *rowcache.Cache
	index   *slots.Index
	indexMu sync.RWMutex
	pool    *blockio.Pool
	store   *checkpoint.Store
	opened  catalog.Snapshot

	pinned [][]uint32 // references of the rows of working sets
	keys   [][]uint64 // of these
	rows   map[uint64]float32
}

type roomOptions struct {
	id       uint64 // of the snapshot to open; 0: the newest
	budget   int64  // of each directory
	hotBytes int64
	readOnly bool
}

func openRoom(t testing.TB, d *disk, o roomOptions) (*room, error) {
	r := &room{t: t, disk: d, rows: map[uint64]float32{}}
	if err := r.open(o); err != nil {
		return nil, errors.Join(err, r.free())
	}
	return r, nil
}

func mustOpen(t testing.TB, d *disk) *room {
	t.Helper()
	return mustOpenWith(t, d, roomOptions{})
}

func mustOpenWith(t testing.TB, d *disk, o roomOptions) *room {
	t.Helper()
	r, err := openRoom(t, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *room) open(o roomOptions) (err error) {
	fs := r.disk.FS()
	r.catalog, err = catalog.Open(catalog.Options{
		Dir: "d0/catalog", FS: fs, Logger: quiet, ReadOnly: o.readOnly,
		Format: catalog.Format{TableID: fmt.Sprintf("%016x", uint64(testTable)), ValueDim: rowWords, RowFormat: "float32", Hash: "h", UnitBytes: 512, PageSlots: pageSlots},
	})
	if err != nil {
		return err
	}
	if r.opened, err = r.catalog.Snapshot(o.id); err != nil && (o.id != 0 || !errors.Is(err, catalog.ErrNoSnapshot)) {
		return err
	}
	if r.index, err = slots.New(slots.Options{PageSlots: pageSlots}); err != nil {
		return err
	}
	if r.opened.ID != 0 {
		err = r.index.Restore(r.opened.Slots)
		if err == nil {
			_, err = r.catalog.Load(r.opened.ID, r.index.DecodePage)
		}
	}
	for err == nil && r.index.Slots() < tableSlot {
		err = r.index.Grow()
	}
	if err != nil {
		return err
	}
	cache := rowcache.Options{Words: rowWords, MaxBytes: 1 << 20, Policy: rowcache.LRULFU, Hash: slots.Hash}
	if r.cache, err = rowcache.New(cache); err != nil {
		return err
	}
	r.pool = blockio.NewPool(512, 0)
	r.store = checkpoint.New(checkpoint.Options{
		Table: tableOf{r}, Catalog: r.catalog, Cache: r.cache, Index: r.index, IndexMu: &r.indexMu, Hash: slots.Hash,
		Trained:     func(row []float32) bool { return row[1] != 0 },
		Deltas:      &deltafile.Store{Devices: r.disk.all(), Table: testTable, RowBytes: 4 * rowWords, Unit: 512, Blocks: blockio.NewPool(512, 0), Reads: r.pool},
		CatalogPath: "d0/catalog", MemoryBytes: 64 << 20, HotBytes: o.hotBytes, FullFiles: 2, ReadOnly: o.readOnly, Logger: quiet,
	})
	var kept []bucketfile.State
	for _, s := range r.catalog.Snapshots() {
		if s.ID != r.opened.ID {
			kept = append(kept, checkpoint.FileState(s, 512))
		}
	}
	files := bucketfile.Options{Table: testTable, RowWords: rowWords, Devices: r.disk.all(), UnitBytes: 512, BufferBytes: 8 << 10, FileBytes: 32 << 10, ReserveBytes: -1, UrgentBytes: -1, Pool: r.pool, Logger: quiet, ReadOnly: o.readOnly}
	for range r.disk.devices {
		files.BudgetBytes = append(files.BudgetBytes, o.budget)
	}
	if r.files, err = bucketfile.Open(context.Background(), checkpoint.FileState(r.opened, 512), kept, files); err != nil {
		return err
	}
	if err := r.store.Open(r.files, r.opened); err != nil {
		return err
	}
	if !o.readOnly {
		var others []string
		for i := range r.disk.devices[1:] {
			others = append(others, dirName(i+1))
		}
		r.store.Copies = catalogcopy.Open(r.catalog, fs, others, quiet)
		if err := r.store.RemoveUnreferenced(); err != nil {
			return err
		}
	}
	return r.restore()
}

// restore loads the dirty rows of the snapshot that was opened, by the rule of checkpoint.Saved,
// and records what the table has.
func (r *room) restore() error {
	layers := checkpoint.Layers(checkpoint.WithDirtyRows(r.opened.Deltas))
	for _, layer := range slices.Backward(layers) {
		err := r.store.EachDirty(context.Background(), layer, func(_ int, d *deltafile.Reader, rows int) error {
			for i := range rows {
				key, info, row := d.Entry(i)
				ref, cached := r.find(key)
				if !cached && r.store.WrittenBefore(layer.Instant(), r.location(key)) {
					if err := r.insert(key, &ref, info&1 != 0); err != nil {
						return err
					}
					copy(r.cache.Row(ref), row)
				} else if !cached {
					continue
				}
				r.cache.Release([]uint32{ref}, !cached)
				if !cached {
					r.cache.Change([]uint32{ref}, rowcache.Change{Set: checkpoint.Saved})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	rows, err := r.content()
	if err == nil && int64(len(rows)) != r.opened.Rows {
		err = fmt.Errorf("snapshot %d has %d rows, its record says %d", r.opened.ID, len(rows), r.opened.Rows)
	}
	r.rows = rows
	return err
}

// content returns what the table has: the rows of the buckets and those of the cache.
func (r *room) content() (map[uint64]float32, error) {
	rows := map[uint64]float32{}
	for slot := range r.index.Slots() {
		err := r.bucket(slot, func(key uint64, row []float32) { rows[key] = row[0] })
		if err != nil {
			return nil, err
		}
	}
	for at, end := uint32(0), false; !end; {
		at, end = r.cache.VisitFrom(at, rowcache.Pick{}, math.MaxInt, func(e rowcache.Entry) rowcache.Change {
			if e.Row[1] != 0 {
				rows[e.Key] = e.Row[0]
			}
			return rowcache.Change{}
		})
	}
	return rows, nil
}

// bucket calls fn for the rows in the bucket of a slot.
func (r *room) bucket(slot uint32, fn func(key uint64, row []float32)) error {
	loc := bucketfile.Location(r.index.Location(slot))
	if loc == 0 {
		return nil
	}
	return r.files.Read(slot, loc, func(b *bucketfile.Bucket) error {
		for i := range b.Len() {
			fn(b.Key(i), b.Row(i))
		}
		return nil
	})
}

func (r *room) location(key uint64) bucketfile.Location {
	return bucketfile.Location(r.index.Location(r.index.Slot(slots.Hash(key))))
}

// find pins the row of a key if it is in the cache.
func (r *room) find(key uint64) (ref uint32, cached bool) {
	refs := make([]uint32, 1)
	found := r.cache.Find(-1, []uint64{key}, []uint64{slots.Hash(key)}, refs)
	return refs[0], found == 1
}

func (r *room) insert(key uint64, ref *uint32, inBucket bool) error {
	refs := make([]uint32, 1)
	n, err := r.cache.Insert([]uint64{key}, []uint64{slots.Hash(key)}, nil, refs, inBucket)
	if err == nil && n == 0 {
		err = errors.New("the cache of the test is too small")
	}
	*ref = refs[0]
	return err
}

// pull pins the row of a key, and creates it if there is none.
func (r *room) pull(key uint64) (ref uint32, err error) {
	ref, cached := r.find(key)
	if cached {
		return ref, nil
	}
	var from []float32
	if err := r.bucket(r.index.Slot(slots.Hash(key)), func(k uint64, row []float32) {
		if k == key {
			from = slices.Clone(row)
		}
	}); err != nil {
		return 0, err
	}
	if err := r.insert(key, &ref, from != nil); err != nil {
		return 0, err
	}
	copy(r.cache.Row(ref), from)
	return ref, nil
}

// update changes a pinned row as training does.
func (r *room) update(key uint64, ref uint32, value float32) {
	r.store.Running().Save([]uint32{ref})
	row := r.cache.Row(ref)
	row[0], row[1] = value, row[1]+1
	r.rows[key] = value
}

// train gives rows new values.
func (r *room) train(value float32, keys ...uint64) error {
	for _, key := range keys {
		ref, err := r.pull(key)
		if err != nil {
			return err
		}
		r.update(key, ref, value)
		r.cache.Release([]uint32{ref}, true)
	}
	return nil
}

// pin makes a working set of rows, which may be updated until they are released.
func (r *room) pin(keys ...uint64) error {
	var refs []uint32
	for _, key := range keys {
		ref, err := r.pull(key)
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	r.pinned, r.keys = append(r.pinned, refs), append(r.keys, keys)
	return nil
}

// updatePinned changes all rows of the oldest working set; release ends that set.
func (r *room) updatePinned(value float32) {
	for i, ref := range r.pinned[0] {
		r.update(r.keys[0][i], ref, value)
	}
}

func (r *room) release() {
	r.cache.Release(r.pinned[0], true)
	r.pinned, r.keys = r.pinned[1:], r.keys[1:]
}

// write writes the bucket of a slot, with those dirty rows of the slot that are not pinned. If
// leave is set, it drops the slot's clean rows from the cache.
func (r *room) write(slot uint32, leave bool) error {
	const mask = tableSlot - 1
	r.store.BeforeBucket(slot, mask)
	rows := map[uint64][]float32{}
	if err := r.bucket(slot, func(key uint64, row []float32) { rows[key] = slices.Clone(row) }); err != nil {
		return err
	}
	var refs []uint32
	r.cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		switch {
		case e.Flags&rowcache.Dirty == 0:
			return rowcache.Change{}
		case e.Pins > 0:
			return rowcache.Change{Clear: checkpoint.Saved}
		case e.Row[1] != 0:
			refs = append(refs, e.Ref)
			rows[e.Key] = slices.Clone(e.Row)
		}
		return rowcache.Change{Clear: rowcache.Dirty}
	})
	if len(refs) == 0 {
		return nil
	}
	loc, err := r.append(slot, rows)
	if err != nil {
		r.cache.Change(refs, rowcache.Change{Set: rowcache.Dirty})
		return err
	}
	old := r.index.Location(slot)
	r.indexMu.Lock()
	r.index.Set(slot, uint64(loc))
	r.indexMu.Unlock()
	r.cache.Change(refs, rowcache.Change{Set: stored})
	if leave {
		r.cache.DropIf(func(e rowcache.Entry) bool {
			return slots.Hash(e.Key)&mask == uint64(slot) && e.Flags&rowcache.Dirty == 0
		})
	}
	return r.files.Release(bucketfile.Location(old))
}

func (r *room) append(slot uint32, rows map[uint64][]float32) (bucketfile.Location, error) {
	a, err := r.files.Begin(slot, len(rows), false)
	if err != nil {
		return 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		a.Put(key, rows[key])
	}
	return a.Commit()
}

// snapshot takes a snapshot.
func (r *room) snapshot(record string) (catalog.Snapshot, error) {
	s, err := r.store.Fix([]byte(record))
	if err != nil {
		return catalog.Snapshot{}, err
	}
	return s.Write(context.Background())
}

func (r *room) mustSnapshot(record string) catalog.Snapshot {
	r.t.Helper()
	s, err := r.snapshot(record)
	r.must(err)
	return s
}

func (r *room) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// free closes everything, as a table does.
func (r *room) free() error {
	var errs []error
	if r.files != nil {
		errs = append(errs, r.files.Close())
	}
	if r.store != nil {
		r.store.Close()
	}
	if r.pool != nil {
		r.pool.Close()
	}
	if r.cache != nil {
		errs = append(errs, r.cache.Close())
	}
	if r.index != nil {
		errs = append(errs, r.index.Close())
	}
	if r.catalog != nil {
		errs = append(errs, r.catalog.Close())
	}
	return errors.Join(errs...)
}

func (r *room) close() {
	r.t.Helper()
	for len(r.pinned) > 0 {
		r.release()
	}
	r.must(r.free())
}

// tableOf implements checkpoint.Table. The tests use only one goroutine.
type tableOf struct{ *room }

func (t tableOf) BlockWrites(fn func(storedRows int64) error) error {
	n := int64(0)
	for slot := range t.index.Slots() {
		if err := t.bucket(slot, func(uint64, []float32) { n++ }); err != nil {
			return err
		}
	}
	return fn(n)
}

func (t tableOf) BlockReleases(fn func(updatable iter.Seq[[]uint32], training bool) error) error {
	return fn(slices.Values(t.pinned), len(t.pinned) > 0)
}

func (t tableOf) TakeMemory(size func() int64, granted func()) (bool, error) {
	size()
	granted()
	return true, nil
}

func (t tableOf) ReleaseMemory() error         { return nil }
func (t tableOf) PutCounters(map[string]int64) {}

// namesOf returns the names of delta files.
func namesOf(list []catalog.Delta) (names []string) {
	for _, d := range list {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

func bucketName(f catalog.File) string { return bucketfile.FileName(testTable, f.ID, f.Incarnation) }
