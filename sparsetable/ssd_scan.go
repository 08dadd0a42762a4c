package sparsetable

import (
	"cmp"
	"context"
	"slices"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
)

// minScanLive is a bound for the live part of a file. Below it, the file's buckets
// are read one by one; otherwise the file is read from end to end. A random read
// takes about as long as reading four blocks in sequence.
const minScanLive = 0.25

// Scan implements Table. Pulls wait until it ends.
//
// It reads bucket files from end to end and skips the buckets that the index does
// not point to. Meanwhile rows may leave the cache and compaction may move buckets.
// But the rows of a slot, in its bucket and in the cache together, do not change,
// because no rows are updated. So each slot is shown once, where its bucket is
// found first. The slots that were found in no file, because they have no bucket
// there or it was moved, are looked up at the end.
func (t *ssd) Scan(ctx context.Context, fn func(key uint64, row []float32) error) error {
	if err := t.door.Enter(); err != nil {
		return err
	}
	defer t.door.Leave()
	if err := t.changing.Acquire(ctx); err != nil {
		return err
	}
	defer t.changing.Release()
	n, end, err := t.beginScan()
	if err != nil {
		return apierr.Of(err)
	}
	defer end()
	s := scan{t: t, ctx: ctx, fn: fn, slots: n, words: t.layout.Words()}
	bytes := int64(n+63) / 64 * 8
	switch err := t.borrow(ctx, bytes); {
	case err == nil:
		defer t.giveBack(bytes)
		s.seen = make([]uint64, bytes/8)
		if err := s.files(); err != nil {
			return s.failed(err)
		}
	case !cannotShrink(err): // without the memory, all slots are looked up one by one
		return apierr.Of(err)
	}
	if err := s.rest(); err != nil {
		return s.failed(err)
	}
	return s.failed(s.outside())
}

// scan is the state of one call of Scan.
type scan struct {
	t     *ssd
	ctx   context.Context
	fn    func(key uint64, row []float32) error
	slots uint32
	words int
	seen  []uint64 // a bit for each slot; empty: no slot was seen

	// Copies of rows.
	keys []uint64
	rows []float32

	stopped error // what fn returned
}

// failed is the error that Scan returns for err.
func (s *scan) failed(err error) error {
	switch {
	case s.stopped != nil:
		return s.stopped
	case s.ctx.Err() != nil && err != nil:
		return s.ctx.Err()
	}
	return apierr.Of(err)
}

func (s *scan) see(slot uint32) { s.seen[slot/64] |= 1 << (slot % 64) }

func (s *scan) isSeen(slot uint32) bool {
	return len(s.seen) > 0 && s.seen[slot/64]&(1<<(slot%64)) != 0
}

// files goes through the files. It ignores damage and bad sectors: the slots whose buckets it did
// not reach are left for rest, which returns the errors of these.
func (s *scan) files() error {
	for _, f := range s.t.files.LiveFiles() {
		if float64(f.LiveBytes) < minScanLive*float64(f.Bytes) {
			continue
		}
		_ = s.t.files.ScanFile(s.ctx, f.File, s.bucket)
		if err := cmp.Or(s.stopped, s.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// bucket shows the rows of a slot, if the bucket at loc is the present one.
func (s *scan) bucket(loc bucketfile.Location, b *bucketfile.Bucket) error {
	if b.Slot >= s.slots || s.isSeen(b.Slot) {
		return nil
	}
	s.t.rewrite.Lock()
	current := bucketfile.Location(s.t.index.Location(b.Slot)) == loc
	s.keys, s.rows = s.keys[:0], s.rows[:0]
	if current {
		s.cached(b.Slot)
	}
	s.t.rewrite.Unlock()
	if !current {
		return nil
	}
	s.see(b.Slot)
	if err := s.show(); err != nil {
		return err
	}
	// b keeps its bytes even if the bucket is superseded now.
	for i := range b.Len() {
		if key := b.Key(i); !s.newer(s.keys, key) {
			if s.stopped = s.fn(key, b.Row(i)); s.stopped != nil {
				return s.stopped
			}
		}
	}
	return nil
}

// newer reports whether the table has a newer version of a row than the bucket of
// its slot: among those that were copied, or outside of buckets.
func (s *scan) newer(copied []uint64, key uint64) bool {
	return slices.Contains(copied, key) || s.t.outside.Has(key)
}

// outside shows the rows that are outside of buckets.
func (s *scan) outside() error {
	return s.t.outside.Each(s.ctx, s.t.checkpoints, func(file int, r *deltafile.Reader, rows int) error {
		for i := range rows {
			if _, ok := s.t.outside.Current(file, r, i); !ok {
				continue
			}
			key, _, row := r.Entry(i)
			if s.stopped = s.fn(key, row); s.stopped != nil {
				return s.stopped
			}
		}
		return nil
	})
}

// cached copies the rows of a slot that are in the cache. It copies none of a table
// opened for reading only, because there the cache has no newer versions. REQUIRES:
// rewrite is held.
func (s *scan) cached(slot uint32) {
	t := s.t
	if t.opts.ReadOnly {
		return
	}
	t.cache.ForEachOfSlot(uint64(slot), t.index.MaskOf(slot), func(e rowcache.Entry) rowcache.Change {
		if t.trained(e.Row) {
			s.keys = append(s.keys, e.Key)
			s.rows = append(s.rows, e.Row...)
		}
		return rowcache.Change{}
	})
}

// show calls fn for the copied rows.
func (s *scan) show() error {
	for i, key := range s.keys {
		if s.stopped = s.fn(key, s.rows[i*s.words:(i+1)*s.words]); s.stopped != nil {
			return s.stopped
		}
	}
	return nil
}

// rest shows the slots that were not seen yet; it reads a batch of them at a time.
func (s *scan) rest() error {
	t := s.t
	var list []uint32
	for slot := uint32(0); slot < s.slots; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		list = list[:0]
		for at := slot; at < s.slots && len(list) < rewriteBatch; at++ {
			if !s.isSeen(at) {
				list = append(list, at)
			}
			slot = at + 1
		}
		if len(list) == 0 {
			continue
		}
		s.keys, s.rows = s.keys[:0], s.rows[:0]
		t.rewrite.Lock()
		if n := t.batchOf(list); n < len(list) {
			slot = list[n]
			list = list[:n]
		}
		err := t.readBuckets(list, func(slot uint32, b *bucketfile.Bucket) error {
			from := len(s.keys)
			s.cached(slot)
			if b == nil {
				return nil
			}
			cached := s.keys[from:]
			for i := range b.Len() {
				if key := b.Key(i); !s.newer(cached, key) {
					s.keys = append(s.keys, key)
					s.rows = append(s.rows, b.Row(i)...)
				}
			}
			return nil
		})
		t.rewrite.Unlock()
		if err != nil {
			return err
		}
		if err := s.show(); err != nil {
			return err
		}
	}
	return nil
}
