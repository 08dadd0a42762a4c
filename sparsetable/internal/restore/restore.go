package restore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/lost"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// Table is the Restorer's view of the table.
type Table interface {
	// InsertDirty puts rows into the cache, makes room for them if necessary, and sets their
	// references, which are pinned.
	InsertDirty(ctx context.Context, rows *rowcache.Incoming, refs []uint32) error
	// Empty evicts all rows to their buckets.
	Empty(ctx context.Context) error
	// Borrow takes memory from the cache until GiveBack.
	Borrow(ctx context.Context, bytes int64) error
	GiveBack(bytes int64)
	// FitRows is the number of rows that the cache can hold. HasRoom reports whether that many more
	// rows leave enough of it free.
	FitRows() int64
	HasRoom(rows int) bool
	// TooSmall returns the error for a budget that does not hold what must be in memory.
	TooSmall() error
}

// Options say what to restore into.
type Options struct {
	Table       Table
	Cache       *rowcache.Cache
	Checkpoints *checkpoint.Store
	Index       *slots.Index
	IndexMu     *sync.RWMutex // guards Index
	Changing    guard.Lock    // keeps others from inserting rows
	Hash        slots.Hasher  // of keys
	Words       int           // of a row
	Lost        *lost.Files   // lost files of the snapshot; nil: none
	// Incoming is scratch memory for rows to be inserted into the cache. It belongs to the holder
	// of Changing.
	Incoming *rowcache.Incoming
}

// Restorer restores the rows of one snapshot.
type Restorer struct {
	Options
	restored atomic.Int64

	// Scratch memory for a block.
	refs   []uint32
	stored []uint32
	in     []bool
}

// Restored is the number of rows put into the cache. Any goroutine may call it.
func (r *Restorer) Restored() int64 { return r.restored.Load() }

// bucketOf is the location of the bucket of a hash's slot. REQUIRES: IndexMu is held, or no other
// goroutine uses the table.
func (r *Restorer) bucketOf(hash uint64) bucketfile.Location {
	return bucketfile.Location(r.Index.Location(r.Index.Slot(hash)))
}

// take sets the incoming rows to rows from to to-1 of a block.
func (r *Restorer) take(block *deltafile.Reader, from, to int) {
	p := r.Incoming
	p.Clear()
	for i := range to - from {
		key, info, row := block.Entry(from + i)
		p.Add(key, r.Hash.Of(key), max(info>>1, 1)-1, uint32(i), row) // inserting counts as one use
	}
}

// keep removes incoming rows that are in the cache, and those for whose hash and bucket keep
// returns false. REQUIRES: IndexMu is held, or no other goroutine uses the table.
func (r *Restorer) keep(keep func(hash uint64, loc bucketfile.Location) bool) {
	p := r.Incoming
	r.in = slices.Grow(r.in[:0], len(p.Keys))[:len(p.Keys)]
	r.Cache.Contains(p.Keys, p.Hashes, r.in)
	kept := 0
	for i, h := range p.Hashes {
		if !r.in[i] && keep(h, r.bucketOf(h)) {
			p.Move(kept, i)
			kept++
		}
	}
	p.Cut(kept)
}

// fill puts as many of the incoming rows into the cache as there is room for, pinned, and returns
// their references.
func (r *Restorer) fill(stored bool) (refs []uint32, err error) {
	p := r.Incoming
	refs = p.Refs()
	added, err := r.Cache.Reinsert(p.Keys, p.Hashes, p.Uses, refs, stored)
	slabs, shift, mask := r.Cache.Slabs()
	for i, ref := range refs[:added] {
		copy(slabs[ref>>shift][int(ref&mask)*r.Words:][:r.Words], p.Rows[i])
	}
	return refs[:added], err
}

// release unpins rows that were dirty when the snapshot was fixed: the first of the incoming ones,
// whose references are refs. from is the number of the first incoming row in the block. A row
// becomes Stored if the file says so, unless its bucket is lost. It becomes Saved if no bucket of
// its slot was written since the instant d of the file.
func (r *Restorer) release(refs []uint32, block *deltafile.Reader, from int, d *catalog.Delta) {
	p := r.Incoming
	r.stored = r.stored[:0]
	for i, ref := range refs {
		if _, info, _ := block.Entry(from + int(p.At[i])); info&1 != 0 && !r.Lost.NoBucket(p.Hashes[i]) {
			r.stored = append(r.stored, ref) // the cache ignores a reference of 0
		}
	}
	r.Cache.Change(r.stored, rowcache.Change{Set: checkpoint.Stored})
	r.Cache.Release(refs, true)
	r.IndexMu.RLock()
	for i, h := range p.Hashes[:len(refs)] {
		if !r.Checkpoints.WrittenBefore(d, r.bucketOf(h)) {
			refs[i] = 0
		}
	}
	r.IndexMu.RUnlock()
	r.Cache.Change(refs, rowcache.Change{Set: checkpoint.Saved})
}

// clean puts the incoming rows, none of which is in the cache, into the cache as clean rows, and
// reports whether the cache is full.
func (r *Restorer) clean() (rows int, full bool, err error) {
	n := len(r.Incoming.Keys)
	if !r.Table.HasRoom(n) {
		return 0, true, nil
	}
	refs, err := r.fill(true)
	r.Cache.Release(refs, false)
	r.restored.Add(int64(len(refs)))
	return len(refs), len(refs) < n, err
}

// Block puts the rows of a block of dirty rows into the cache as clean rows, except those that are
// already there or in a bucket that was written since the instant d of the file. It reports whether
// the cache is full.
func (r *Restorer) Block(block *deltafile.Reader, rows int, d *catalog.Delta) (full bool, err error) {
	r.take(block, 0, rows)
	r.keep(func(_ uint64, loc bucketfile.Location) bool { return r.Checkpoints.WrittenBefore(d, loc) })
	_, full, err = r.clean()
	return full, err
}

// Dirty loads the rows that were dirty when the snapshot was fixed, the most used first. Damage of
// the files is an error of Open. The speed is that of reading the device or of filling the cache.
// If the rows do not fit the cache, the least used are written to their buckets and evicted again.
func (r *Restorer) Dirty(ctx context.Context, s catalog.Snapshot) error {
	list := checkpoint.Layers(checkpoint.WithDirtyRows(s.Deltas))
	if len(list) == 0 {
		return nil
	}
	if r.Lost == nil && len(list) == 1 && checkpoint.NoBucketSince(list[0].Instant(), s) { // no bucket was written since
		return r.allOf(ctx, list[0])
	}
	l := layers{Restorer: r, list: list}
	defer l.close()
	return l.restore(ctx, hashRange{})
}

// allOf loads the dirty rows of a snapshot whose rows are all in files of one instant. If they do
// not fit, the least used are evicted again.
func (r *Restorer) allOf(ctx context.Context, layer checkpoint.Layer) error {
	return r.Checkpoints.EachDirty(ctx, layer, func(_ int, block *deltafile.Reader, n int) error {
		// The rows of a part are pinned until all rows of the part are inserted. The smallest cache
		// cannot hold the rows of a whole block.
		for from, part := 0, int(max(1, r.Table.FitRows()/4)); from < n; from += part {
			r.take(block, from, min(from+part, n))
			r.refs = slices.Grow(r.refs[:0], len(r.Incoming.Keys))[:len(r.Incoming.Keys)]
			clear(r.refs)
			err := r.Table.InsertDirty(ctx, r.Incoming, r.refs)
			r.release(r.refs, block, from, layer.Instant())
			if err != nil {
				return err
			}
		}
		r.restored.Add(int64(n))
		return nil
	})
}
