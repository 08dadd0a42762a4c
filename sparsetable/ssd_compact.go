package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// keepSpace compacts, if buckets were written, until space is within its bounds.
// Whoever writes buckets calls it after every step, so that the bounds hold
// however fast the table is written: the one who writes waits, about as long
// again as the step took. REQUIRES: rewrite is not held.
func (t *ssd) keepSpace(ctx context.Context) error {
	if t.unpaid.Load() < int64(t.plan.bufferBytes) {
		return nil
	}
	t.unpaid.Store(0)
	return t.compact(ctx)
}

// compact empties files until space is within its bounds.
func (t *ssd) compact(ctx context.Context) error {
	if t.readOnly {
		return nil
	}
	last := uint32(0) // no file's number
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		file, err := t.compactOne(ctx)
		if err != nil || file == 0 {
			return err
		}
		if file == last {
			// It was read to its end without an error, yet counts live buckets.
			t.log.Warn("sparsetable: a bucket file stays in use that the index does not refer to", "file", file)
			return nil
		}
		last = file
	}
}

// compactOne moves the live buckets out of one file, if that is necessary, and
// returns its number, 0 if it was not. A file that snapshots hold goes when they
// do. One file is emptied at a time: a scan takes memory.
func (t *ssd) compactOne(ctx context.Context) (file uint32, err error) {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	c, ok := t.worstFile()
	if !ok {
		return 0, nil
	}
	return c.File, t.emptyFile(ctx, c.File)
}

// maxLiveShare is how much of a file may be live for its emptying to make room
// in a directory whose budget nears its end: the rest is what it yields, for
// nine times as many bytes written.
const maxLiveShare = 0.9

// fullFiles is how many files' room a directory has left when it counts as nearly
// full: that of urgent appends, and as much for each of a step, the moved
// buckets of a file, and emptied files that reads under way need a little
// longer.
const fullFiles = 4

// worstFile is the file to be emptied next: the one with the smallest live part,
// if all files together take more than the allowed multiple of what is in use,
// or in a directory that is nearly full. Files that snapshots hold come second
// to those whose emptying makes room at once.
func (t *ssd) worstFile() (worst bucketfile.Candidate, ok bool) {
	all, each := t.files.Space()
	total := all.TotalBytes - all.DyingBytes
	limit := t.opts.SSD.MaxSpaceAmplification
	full := func(c bucketfile.Candidate) bool {
		d := each[c.Directory]
		return d.BudgetBytes > 0 && d.TotalBytes-d.DyingBytes > d.BudgetBytes-fullFiles*t.files.UrgentBytes() &&
			c.Holders == 0 && float64(c.LiveBytes) <= maxLiveShare*float64(c.Bytes)
	}
	var room bucketfile.Candidate // makes room in a full directory
	needRoom := false
	candidates := t.files.CompactionCandidates() // those that are not held first
	for _, c := range candidates {
		if c.LiveBytes == 0 { // held by snapshots or by reads under way
			total -= c.Bytes
			if c.Holders == 0 { // to empty more would take room before it makes any
				each[c.Directory].DyingBytes += c.Bytes
			}
		}
	}
	for _, c := range candidates {
		if c.LiveBytes == 0 {
			continue
		}
		if !needRoom && full(c) {
			room, needRoom = c, true
		}
		if !ok || worst.Holders == 0 && c.Holders > 0 && float64(worst.LiveBytes)*limit > float64(worst.Bytes) {
			worst, ok = c, true
		}
	}
	// A few buffers more or less are nothing to work against, nor are the files
	// that are appended to, which cannot be emptied.
	slack := (4*appendBuffers*int64(t.plan.bufferBytes) + t.plan.minFileBytes()) * int64(len(t.devices))
	if ok && float64(total-slack) > limit*float64(all.LiveBytes) {
		return worst, true
	}
	return room, needRoom
}

// emptyFile appends the live buckets of a file anew.
func (t *ssd) emptyFile(ctx context.Context, file uint32) error {
	err := t.files.ScanFile(ctx, file, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		if b.Slot >= t.index.Slots() || bucketfile.Location(t.index.Location(b.Slot)) != loc {
			return nil // superseded
		}
		return t.moveBucket(loc, b)
	})
	if errors.Is(err, bucketfile.ErrUnknownFile) {
		return nil // it died meanwhile
	}
	return err
}

// moveBucket appends a bucket as it is, with the dirty rows of its slot.
func (t *ssd) moveBucket(loc bucketfile.Location, b *bucketfile.Bucket) error {
	w := &t.rewrite.rewriter
	t.collectDirty(b.Slot, slotMask(b.Slot, t.index.Slots()))
	w.merge(b, nil)
	next, err := t.writeBucket(b.Slot)
	if err != nil {
		t.dirtyAgain()
		return err
	}
	t.indexMu.Lock()
	t.index.Set(b.Slot, uint64(next), len(w.keys))
	t.index.SetFilter(b.Slot, w.hashes)
	t.indexMu.Unlock()
	t.rewrite.stored += int64(len(w.keys) - b.Len())
	t.nowStored()
	w.counts.compactedBytes += int64(loc.Units()) * int64(t.files.Unit())
	return t.files.Release(loc)
}

func hashKey(key uint64) uint64 { return slots.Hash(key) }
