package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/plan"
)

// keepSpace compacts files, if buckets were written, until the space on disk is
// within its bounds. Code that writes buckets calls it after every step, so that
// the bounds hold however fast the table is written. The caller thereby waits,
// about as long again as the step took. REQUIRES: rewrite is not held.
func (t *ssd) keepSpace(ctx context.Context) error {
	if t.unpaid.Load() < int64(t.plan.BufferBytes) {
		return nil
	}
	t.unpaid.Store(0)
	if err := t.compact(ctx); err != nil && !errors.Is(err, bucketfile.ErrNoSpace) {
		return err
	}
	return nil // where there is no room to move buckets, the next write returns the error
}

// compact empties files until the space on disk is within its bounds.
func (t *ssd) compact(ctx context.Context) error {
	if t.opts.ReadOnly {
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
			// It was read to its end without an error, and yet it counts live buckets.
			t.opts.Logger.Warn("sparsetable: a bucket file is not deleted: it counts live buckets, but the index refers to none of them", "file", file)
			return nil
		}
		last = file
	}
}

// compactOne moves the live buckets out of one file, if that is necessary, and
// returns the file's number, or 0 if it was not necessary. A file that snapshots
// hold is deleted only once these are dropped. One file is emptied at a time,
// because reading it takes memory.
func (t *ssd) compactOne(ctx context.Context) (file uint32, err error) {
	t.rewrite.compacting.Lock()
	defer t.rewrite.compacting.Unlock()
	c, ok := t.worstFile()
	if !ok {
		return 0, nil
	}
	err = t.emptyFile(ctx, c.File)
	if invariants.Enabled {
		t.rewrite.Lock()
		defer t.rewrite.Unlock() // also where the check panics
		t.checkTable()
	}
	return c.File, err
}

// maxLiveShare is the largest live part of a file that is emptied to make room in a
// directory that is nearly full. Emptying such a file frees a tenth of it, and
// writes nine times as many bytes.
const maxLiveShare = 0.9

// fullShare is the live part of a file from which on emptying it is not worth while:
// the dead bytes are in files then that cannot be emptied.
const fullShare = 0.97

// A directory counts as nearly full when it has less left than fullFiles times the
// room for urgent appends: that room itself, and as much again for what a step
// writes, for the moved buckets of a file, and for emptied files that reads in
// flight still hold.
const fullFiles = 2

// reservedBytes is how much of each directory's file system is kept free. Only
// appends that make room may use it.
const reservedBytes = 64 << 20

// worstFile is the file to be emptied next, if one has to be: because all files
// together take more than spaceTarget, or because a directory is nearly full. It is
// the file with the smallest live part. Files that snapshots hold come after those
// whose emptying makes room at once.
func (t *ssd) worstFile() (worst bucketfile.Candidate, ok bool) {
	all, each := t.files.Space()
	crowded := all.TotalBytes-all.DyingBytes-all.KeptBytes > t.spaceTarget(all.LiveBytes)
	full, anyFull := make([]bool, len(each)), false
	for i, sp := range each {
		full[i] = t.nearlyFull(i, sp)
		anyFull = anyFull || full[i]
	}
	if !crowded && !anyFull {
		return bucketfile.Candidate{}, false
	}
	// The best of each kind; this runs for every buffer that is written, so nothing is sorted.
	var free, held, room firstFile // room makes room in a full directory
	t.files.EachCandidate(func(c bucketfile.Candidate) {
		if c.LiveBytes == 0 {
			return
		}
		if full[c.Directory] && c.Holders == 0 && float64(c.LiveBytes) <= maxLiveShare*float64(c.Bytes) {
			room.offer(c)
		}
		switch {
		case float64(c.LiveBytes) > fullShare*float64(c.Bytes):
		case c.Holders == 0:
			free.offer(c)
		default:
			held.offer(c)
		}
	})
	if crowded {
		worth := free.found && float64(free.LiveBytes)*t.opts.SSD.MaxSpaceAmplification <= float64(free.Bytes)
		if held.found && !worth {
			return held.Candidate, true
		}
		if free.found {
			return free.Candidate, true
		}
	}
	return room.Candidate, room.found
}

// firstFile is the first of some files in the order in which they are emptied.
type firstFile struct {
	bucketfile.Candidate
	found bool
}

func (f *firstFile) offer(c bucketfile.Candidate) {
	if !f.found || c.Compare(f.Candidate) < 0 {
		f.Candidate, f.found = c, true
	}
}

// spaceTarget is how many bytes files may take before one is emptied, where so
// many are live: as many less than the limit allows as may be written before
// somebody looks again, so that the limit holds at any time. Those are
//
//   - two steps of each of two writers, who may be at work side by side: one of what they
//     split and of what makes room for more slots, and one of rows that leave the cache;
//   - the live part of a file while it is being emptied: files have a sixteenth of
//     what is live, and those that are emptied are emptier than most;
//   - buffers, and the file that is appended to, which cannot be emptied.
//
// A small table does not have so many bytes to spare. So at most half of the bytes that
// may be dead are kept free, and of the bytes that are always allowed, only those that
// compaction could free.
func (t *ssd) spaceTarget(live int64) int64 {
	t.indexMu.RLock()
	steps := 4 * t.stepBytes()
	t.indexMu.RUnlock()
	limit := t.opts.SSD.MaxSpaceAmplification
	slack := t.spaceSlack() * int64(len(t.dirs.Devices))
	keep := float64(slack + steps + live/32)
	keep = min(keep, (limit-1)/2*float64(live))
	return max(int64(limit*float64(live)-keep), live+slack)
}

// nearlyFull reports whether a directory's budget, or its file system, has no more
// left than what the appends need that make room.
func (t *ssd) nearlyFull(directory int, sp bucketfile.Space) bool {
	keep := fullFiles * t.files.UrgentBytes()
	if sp.BudgetBytes > 0 && sp.TotalBytes+sp.OtherBytes-sp.DyingBytes > sp.BudgetBytes-keep {
		return true
	}
	free, err := t.dirs.Devices[directory].Free()
	// Where the free space is unknown, appends find out, because they check it,
	// too.
	return err == nil && free+sp.DyingBytes < reservedBytes+keep
}

// spaceSlack is what compaction cannot free in a directory: a few buffers, and the
// file that is appended to.
func (t *ssd) spaceSlack() int64 {
	return 4*plan.AppendBuffers*int64(t.plan.BufferBytes) + t.plan.MinFileBytes()
}

// alwaysAllowed is how many dead bytes there may be whatever the limit is: what
// compaction cannot free, and as much again for what spaceTarget keeps free in a larger
// table. In a directory these are 24 buffers and two of the smallest files.
func (t *ssd) alwaysAllowed() int64 { return 2 * t.spaceSlack() * int64(len(t.dirs.Devices)) }

// emptyFile appends the live buckets of a file to another file. In a damaged file,
// those that the scan did not reach are read one by one, so that the error names
// the slot of a damaged bucket, and damage outside live buckets is no error.
func (t *ssd) emptyFile(ctx context.Context, file uint32) error {
	err := t.files.ScanFile(ctx, file, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		if !t.liesAt(b.Slot, loc) {
			return nil // superseded
		}
		return t.moveBucket(loc, b)
	})
	switch {
	case errors.Is(err, bucketfile.ErrUnknownFile):
		return nil // it was deleted meanwhile
	case errors.Is(err, bucketfile.ErrCorrupt):
		t.opts.Logger.Warn("sparsetable: a bucket file is damaged; its live buckets are moved to another file", "error", err)
		return t.emptyRest(ctx, file)
	}
	return err
}

// emptyRest moves the buckets that are still in a file, slot by slot.
func (t *ssd) emptyRest(ctx context.Context, file uint32) error {
	var list []uint32
	for slot, end := uint32(0), false; !end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		list = list[:0]
		t.rewrite.Lock()
		n := t.index.Slots()
		for left := sweepSlots; left > 0 && slot < n && len(list) < rewriteBatch; left-- {
			if bucketfile.Location(t.index.Location(slot)).File() == file {
				list = append(list, slot)
			}
			slot++
		}
		end = slot >= n
		err := t.eachBucket(list, func(slot uint32, b *bucketfile.Bucket) error {
			return t.moveBucket(bucketfile.Location(t.index.Location(slot)), b)
		})
		t.rewrite.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// moveBucket appends a bucket as it is, with the dirty rows of its slot.
func (t *ssd) moveBucket(loc bucketfile.Location, b *bucketfile.Bucket) error {
	mask := slotMask(b.Slot, t.index.Slots())
	t.lockMoving(b.Slot, mask, b)
	defer t.rewrite.moving.Unlock()
	w := &t.rewrite.rewriter
	w.urgent, w.moves = true, true
	defer func() { w.urgent, w.moves = false, false }()
	if invariants.Enabled {
		t.checkCached(b.Slot, b)
	}
	t.collectDirty(b.Slot, mask)
	w.merge(b, nil)
	if _, err := t.replaceBucket(b.Slot, b.Len()); err != nil {
		return err
	}
	w.counts.compactedBytes += int64(loc.Units()) * int64(t.files.Unit())
	return t.files.Release(loc)
}
