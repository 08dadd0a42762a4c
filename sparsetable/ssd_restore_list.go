package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// listRestore loads the dirty rows of a list of delta files, by the rule of checkpoint.Saved. It
// reads the newest files first, so that a row that is in the cache already is newer than
// the one in an older file. That requires that no row leaves the cache meanwhile. Where
// not all rows fit, it loads only the rows whose hashes have a certain first bit, lets
// them leave, and then loads the others, and so on with more bits.
type listRestore struct {
	t    *ssd
	list []checkpoint.Layer
	b    restoreBatch
	// since is, for each slot that the table had when it was opened, the number of the
	// oldest file that is newer than the slot's bucket; nil: no bucket was written since.
	since []uint8
	slots uint32
}

// errRestoreFull says that the cache has no room for the rows that were to be loaded.
var errRestoreFull = errors.New("sparsetable: the cache is full")

// hashRange is the hashes with certain first bits.
type hashRange struct {
	first uint64
	bits  uint
}

func (h hashRange) has(hash uint64) bool { return hash>>(64-h.bits) == h.first }

// restore loads the rows of a range.
func (r *listRestore) restore(ctx context.Context, h hashRange) error {
	others := r.t.cache.Stats().Rows > 0
	err := r.load(ctx, h)
	if !errors.Is(err, errRestoreFull) {
		return err
	}
	r.discard(h)
	if err := r.noteBuckets(ctx); err != nil {
		return err
	}
	if others {
		if err := r.makeRoom(ctx); err != nil {
			return err
		}
		if err := r.load(ctx, h); !errors.Is(err, errRestoreFull) {
			return err
		}
		r.discard(h)
	}
	if h.bits == 40 {
		return r.t.overBudget("the snapshot's rows in memory", r.t.aLittleMore())
	}
	for side := range uint64(2) {
		if err := r.restore(ctx, hashRange{h.first<<1 | side, h.bits + 1}); err != nil {
			return err
		}
	}
	return nil
}

// load reads all files and puts the rows of a range into the cache.
func (r *listRestore) load(ctx context.Context, h hashRange) error {
	rows := int64(0)
	for at := len(r.list) - 1; at >= 0; at-- {
		err := r.t.checkpoints.EachDirty(ctx, r.list[at], func(_ int, d *deltafile.Reader, n int) error {
			added, err := r.loadBlock(d, n, at, h)
			rows += int64(added)
			return err
		})
		if err != nil {
			return err
		}
	}
	r.t.sets.Lock()
	defer r.t.sets.Unlock()
	r.t.sets.stats.RestoredRows += rows
	return nil
}

// loadBlock puts those rows of a block that are the latest versions into the cache, dirty.
func (r *listRestore) loadBlock(d *deltafile.Reader, n, at int, h hashRange) (added int, err error) {
	t, p, b := r.t, &r.t.pull, &r.b
	t.batchOfBlock(d, 0, n)
	t.keepOfBatch(b, func(hash uint64, _ bucketfile.Location) bool { return h.has(hash) && r.valid(at, hash) })
	b.refs = resized(b.refs, len(p.Keys))
	added, err = t.fillBatch(b, false)
	b.stored = b.stored[:0]
	for i, ref := range b.refs[:added] {
		if _, info, _ := d.Entry(int(p.At[i])); info&1 != 0 && !t.lost.NoBucket(p.Hashes[i]) {
			b.stored = append(b.stored, ref)
		}
	}
	t.cache.Change(b.stored, rowcache.Change{Set: checkpoint.Stored})
	t.cache.Release(b.refs[:added], true)
	t.markSaved(b.refs[:added], r.list[at].Instant())
	if err == nil && added < len(p.Keys) {
		err = errRestoreFull
	}
	return added, err
}

// valid reports whether no bucket of the slot of a hash was written, before the table was
// opened, since the instant of a file.
func (r *listRestore) valid(at int, hash uint64) bool {
	if r.t.lost != nil {
		return r.t.lost.Valid(at, hash)
	}
	if r.since != nil {
		return int(r.since[slots.SlotAmong(hash, r.slots)]) <= at
	}
	return r.t.checkpoints.WrittenBefore(r.list[at].Instant(), r.t.bucketOf(hash))
}

// discard drops the rows of a range, which are in the files.
func (r *listRestore) discard(h hashRange) {
	r.t.cache.DropIf(func(e rowcache.Entry) bool { return h.has(r.t.hash.Of(e.Key)) })
}

// noteBuckets makes since. When it is called for the first time no row is in the cache: to borrow its memory
// would write rows to buckets, and the rows of their slots that are yet to be loaded would seem to be
// outdated by these.
func (r *listRestore) noteBuckets(ctx context.Context) error {
	t := r.t
	if r.since != nil || t.lost != nil { // package lost has noted it
		return nil
	}
	r.slots = t.index.Slots()
	if err := t.borrow(ctx, int64(r.slots)); errors.Is(err, errNoVictims) {
		return t.overBudget("the snapshot's rows in memory", t.aLittleMore())
	} else if err != nil {
		return err
	}
	r.since = make([]uint8, r.slots)
	for slot := range r.since {
		for loc := bucketfile.Location(t.index.Location(uint32(slot))); int(r.since[slot]) < len(r.list) && !t.checkpoints.WrittenBefore(r.list[r.since[slot]].Instant(), loc); {
			r.since[slot]++
		}
	}
	return nil
}

// makeRoom lets all rows leave the cache, to their buckets.
func (r *listRestore) makeRoom(ctx context.Context) error {
	t := r.t
	for st := t.cache.Stats(); st.Rows > 0; {
		before := st.Rows
		_, err := t.makeRoom(int(min(before, evictBatch)))
		if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil {
			_, err = t.makeRoom(int(min(before, evictBatch)))
		}
		if err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return err
		}
		if st = t.cache.Stats(); st.Rows == before {
			return errNoVictims
		}
	}
	return nil
}

// close gives the memory back.
func (r *listRestore) close() {
	if r.since != nil {
		r.t.giveBack(int64(r.slots))
	}
}
