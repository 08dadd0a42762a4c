// Package scan yields all rows of a table on SSD, each once.
//
// It reads bucket files from end to end and skips the buckets that the index does not point to.
// Meanwhile rows may leave the cache and compaction may move buckets. But the rows of a slot, in
// its bucket and in the cache together, do not change, because no rows are updated, no row is
// inserted into the cache, and no slot is split or merged. So the rows of each slot are yielded
// once, where its bucket is found first. Slots that were not found in any file, because they have
// no bucket or it was moved, are looked up at the end.
package scan

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/slots"
)

const (
	// minLive is the least live part of a file that is read from end to end. Below it, the file's
	// buckets are read one by one: a random read takes about as long as reading four blocks in
	// sequence.
	minLive = 0.25
	// batch is the number of slots looked up at a time.
	batch = 128
)

// Table is a scan's view of the table. While it is locked, nobody writes a bucket.
type Table interface {
	sync.Locker
	// EachCached calls fn for the rows of a slot in the cache, if they may be newer than those in
	// its bucket. fn must not keep row. REQUIRES: the table is locked.
	EachCached(slot uint32, fn func(key uint64, row []float32))
	// ReadBuckets reads the buckets of as many slots at the beginning of list as can be read at
	// once, and calls fn for each of them, in any order; b is nil if a slot has none. It returns
	// the number of slots. REQUIRES: the table is locked.
	ReadBuckets(list []uint32, fn func(slot uint32, b *bucketfile.Bucket) error) (n int, err error)
}

// Options say what to scan.
type Options struct {
	Table       Table
	Files       *bucketfile.Set
	Index       *slots.Index
	Outside     *outside.Index // rows that are in no bucket, or whose bucket has an older version; nil: there are none
	Checkpoints *checkpoint.Store
	Slots       uint32 // of the index
	Words       int    // of a row
	// Seen has a bit for each slot, SeenBytes in all. nil: there is no memory for it, so all slots
	// are looked up one by one.
	Seen []uint64
}

// SeenBytes is the size of Options.Seen for that many slots.
func SeenBytes(slots uint32) int64 { return (int64(slots) + 63) / 64 * 8 }

// Rows calls fn for every trained row. If fn returns an error, Rows stops and returns it unchanged.
func Rows(ctx context.Context, o Options, fn func(key uint64, row []float32) error) error {
	s := scan{Options: o, ctx: ctx, fn: fn}
	var err error
	for _, part := range []func() error{s.files, s.rest, s.outside} {
		if err = part(); err != nil {
			break
		}
	}
	switch {
	case s.stopped != nil:
		return s.stopped
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	}
	return apierr.Of(err)
}

// scan is the state of one call of Rows.
type scan struct {
	Options
	ctx context.Context
	fn  func(key uint64, row []float32) error

	// Copies of rows.
	keys []uint64
	rows []float32

	stopped error // what fn returned
}

func (s *scan) see(slot uint32) { s.Seen[slot/64] |= 1 << (slot % 64) }

func (s *scan) isSeen(slot uint32) bool {
	return len(s.Seen) > 0 && s.Seen[slot/64]&(1<<(slot%64)) != 0
}

// files goes through the files. It ignores damage and bad sectors: it leaves the slots whose
// buckets it did not reach to rest, which returns their errors.
func (s *scan) files() error {
	if s.Seen == nil {
		return nil
	}
	for _, f := range s.Files.LiveFiles() {
		if float64(f.LiveBytes) < minLive*float64(f.Bytes) {
			continue
		}
		_ = s.Files.ScanFile(s.ctx, f.File, s.bucket)
		if err := cmp.Or(s.stopped, s.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// bucket yields the rows of a slot if the bucket at loc is the current one.
func (s *scan) bucket(loc bucketfile.Location, b *bucketfile.Bucket) error {
	if b.Slot >= s.Slots || s.isSeen(b.Slot) {
		return nil
	}
	s.Table.Lock()
	current := s.Index.LiesAt(b.Slot, uint64(loc))
	s.keys, s.rows = s.keys[:0], s.rows[:0]
	if current {
		s.cached(b.Slot)
	}
	s.Table.Unlock()
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

// newer reports whether the table has a newer version of a row than the bucket of its slot: among
// the copied rows, or outside of buckets.
func (s *scan) newer(copied []uint64, key uint64) bool {
	return slices.Contains(copied, key) || s.Outside.Has(key)
}

// outside yields the rows that are outside of buckets.
func (s *scan) outside() error {
	return s.Outside.Each(s.ctx, s.Checkpoints, func(file int, r *deltafile.Reader, rows int) error {
		for i := range rows {
			if _, ok := s.Outside.Current(file, r, i); !ok {
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

// cached copies the rows of a slot that are in the cache. REQUIRES: the table is locked.
func (s *scan) cached(slot uint32) {
	s.Table.EachCached(slot, func(key uint64, row []float32) {
		s.keys = append(s.keys, key)
		s.rows = append(s.rows, row...)
	})
}

// show calls fn for the copied rows.
func (s *scan) show() error {
	for i, key := range s.keys {
		if s.stopped = s.fn(key, s.rows[i*s.Words:(i+1)*s.Words]); s.stopped != nil {
			return s.stopped
		}
	}
	return nil
}

// rest yields the rows of the slots not yet seen; it reads a batch of slots at a time.
func (s *scan) rest() error {
	var list []uint32
	for slot := uint32(0); slot < s.Slots; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		list = list[:0]
		for ; slot < s.Slots && len(list) < batch; slot++ {
			if !s.isSeen(slot) {
				list = append(list, slot)
			}
		}
		if len(list) == 0 {
			continue
		}
		s.keys, s.rows = s.keys[:0], s.rows[:0]
		s.Table.Lock()
		n, err := s.Table.ReadBuckets(list, s.copied)
		s.Table.Unlock()
		if err != nil {
			return err
		}
		if n < len(list) {
			slot = list[n]
		}
		if err := s.show(); err != nil {
			return err
		}
	}
	return nil
}

// copied copies the rows of a slot with the given bucket. REQUIRES: the table is locked.
func (s *scan) copied(slot uint32, b *bucketfile.Bucket) error {
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
}
