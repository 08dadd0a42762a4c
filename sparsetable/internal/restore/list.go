package restore

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// layers loads the dirty rows of a list of delta files, by the rule of checkpoint.Saved. It reads
// the newest files first, so that a row that is already in the cache is newer than the one in an
// older file. That requires that no row leaves the cache meanwhile. If not all rows fit, it loads
// only the rows whose hashes have a certain first bit, evicts them, then loads the others, and so
// on with more bits.
type layers struct {
	*Restorer
	list []checkpoint.Layer
	// since[slot], for each slot that existed when the table was opened, is the number of the
	// oldest file that is newer than the slot's bucket; nil: no bucket was written since.
	since []uint8
	slots uint32
}

// errFull says that the cache has no room for the rows to be loaded.
var errFull = errors.New("sparsetable: the cache is full")

// hashRange is the hashes with certain first bits.
type hashRange struct {
	first uint64
	bits  uint
}

func (h hashRange) has(hash uint64) bool { return hash>>(64-h.bits) == h.first }

// restore loads the rows of a range.
func (l *layers) restore(ctx context.Context, h hashRange) error {
	others := l.Cache.Stats().Rows > 0
	err := l.load(ctx, h)
	if !errors.Is(err, errFull) {
		return err
	}
	l.discard(h)
	if err := l.noteBuckets(ctx); err != nil {
		return err
	}
	if others {
		if err := l.Table.Empty(ctx); err != nil {
			return err
		}
		if err := l.load(ctx, h); !errors.Is(err, errFull) {
			return err
		}
		l.discard(h)
	}
	if h.bits == 40 {
		return l.Table.TooSmall()
	}
	for side := range uint64(2) {
		if err := l.restore(ctx, hashRange{h.first<<1 | side, h.bits + 1}); err != nil {
			return err
		}
	}
	return nil
}

// load reads all files and puts the rows of a range into the cache.
func (l *layers) load(ctx context.Context, h hashRange) error {
	rows := int64(0)
	for at := len(l.list) - 1; at >= 0; at-- {
		err := l.Checkpoints.EachDirty(ctx, l.list[at], func(_ int, d *deltafile.Reader, n int) error {
			added, err := l.loadBlock(d, n, at, h)
			rows += int64(added)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.restored.Add(rows)
	return nil
}

// loadBlock puts those rows of a block that are the latest versions into the cache, dirty.
func (l *layers) loadBlock(block *deltafile.Reader, n, at int, h hashRange) (added int, err error) {
	l.take(block, 0, n)
	l.keep(func(hash uint64, _ bucketfile.Location) bool { return h.has(hash) && l.valid(at, hash) })
	refs, err := l.fill(false)
	l.release(refs, block, 0, l.list[at].Instant())
	if err == nil && len(refs) < len(l.Incoming.Keys) {
		err = errFull
	}
	return len(refs), err
}

// valid reports whether no bucket of the slot of a hash was written between the instant of a file
// and the opening of the table.
func (l *layers) valid(at int, hash uint64) bool {
	if l.Lost != nil {
		return l.Lost.Valid(at, hash)
	}
	if l.since != nil {
		return int(l.since[slots.SlotAmong(hash, l.slots)]) <= at
	}
	return l.Checkpoints.WrittenBefore(l.list[at].Instant(), l.bucketOf(hash))
}

// discard drops the rows of a range, which are still in the files.
func (l *layers) discard(h hashRange) {
	l.Cache.DropIf(func(e rowcache.Entry) bool { return h.has(l.Hash.Of(e.Key)) })
}

// noteBuckets computes since. When it is first called, no row may be in the cache: borrowing its
// memory would write rows to buckets, and rows of the same slots that are yet to be loaded would
// then seem to be outdated.
func (l *layers) noteBuckets(ctx context.Context) error {
	if l.since != nil || l.Lost != nil { // package lost has computed it
		return nil
	}
	l.slots = l.Index.Slots()
	if err := l.Table.Borrow(ctx, int64(l.slots)); err != nil {
		return err
	}
	l.since = make([]uint8, l.slots)
	for slot := range l.since {
		for loc := bucketfile.Location(l.Index.Location(uint32(slot))); int(l.since[slot]) < len(l.list) && !l.Checkpoints.WrittenBefore(l.list[l.since[slot]].Instant(), loc); {
			l.since[slot]++
		}
	}
	return nil
}

// close returns the borrowed memory.
func (l *layers) close() {
	if l.since != nil {
		l.Table.GiveBack(int64(l.slots))
	}
}
