package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/invariants"
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
	if err := t.compact(ctx); err != nil && !errors.Is(err, bucketfile.ErrNoSpace) {
		return err
	}
	return nil // without room for moving buckets, who has to write will say so
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
			t.log.Warn("sparsetable: a bucket file is not deleted: it counts live buckets, but the index refers to none of them", "file", file)
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
	err = t.emptyFile(ctx, c.File)
	if invariants.Enabled {
		t.rewrite.Lock()
		defer t.rewrite.Unlock() // also where the check panics
		t.checkTable()
	}
	return c.File, err
}

// maxLiveShare is how much of a file may be live for its emptying to make room
// in a directory whose budget nears its end: the rest is what it yields, for
// nine times as many bytes written.
const maxLiveShare = 0.9

// fullFiles is how many files' room a directory has left when it counts as nearly
// full: that of urgent appends, and as much for each of a step, the moved
// buckets of a file, and emptied files that reads under way need a little
// longer.
const fullFiles = 2

// reservedBytes stay free in each directory's file system, but for appends that
// make room.
const reservedBytes = 64 << 20

// worstFile is the file to be emptied next: the one with the smallest live part,
// if all files together take more than the allowed multiple of what is in use,
// or in a directory that is nearly full. Files that snapshots hold come second
// to those whose emptying makes room at once.
func (t *ssd) worstFile() (worst bucketfile.Candidate, ok bool) {
	all, each := t.files.Space()
	total := all.TotalBytes - all.DyingBytes
	limit := t.opts.SSD.MaxSpaceAmplification
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
	full := make([]bool, len(each))
	for i, sp := range each {
		full[i] = t.nearlyFull(i, sp)
	}
	for _, c := range candidates {
		if c.LiveBytes == 0 {
			continue
		}
		if !needRoom && full[c.Directory] && c.Holders == 0 && float64(c.LiveBytes) <= maxLiveShare*float64(c.Bytes) {
			room, needRoom = c, true
		}
		if !ok || worst.Holders == 0 && c.Holders > 0 && float64(worst.LiveBytes)*limit > float64(worst.Bytes) {
			worst, ok = c, true
		}
	}
	slack := t.spaceSlack() * int64(len(t.devices))
	if ok && float64(total-slack) > limit*float64(all.LiveBytes) {
		return worst, true
	}
	return room, needRoom
}

// nearlyFull reports whether a directory's budget, or its file system, has no more
// left than what appends need that make room.
func (t *ssd) nearlyFull(directory int, sp bucketfile.Space) bool {
	keep := fullFiles * t.files.UrgentBytes()
	if sp.BudgetBytes > 0 && sp.TotalBytes+sp.OtherBytes-sp.DyingBytes > sp.BudgetBytes-keep {
		return true
	}
	free, err := t.devices[directory].Free()
	// Without an answer it is left to those who append, who ask as well.
	return err == nil && free+sp.DyingBytes < reservedBytes+keep
}

// spaceSlack is what a directory may take beyond its bounds: a few buffers more or
// less are nothing to work against, nor is the file that is appended to, which
// cannot be emptied.
func (t *ssd) spaceSlack() int64 {
	return 4*appendBuffers*int64(t.plan.bufferBytes) + t.plan.minFileBytes()
}

// emptyFile appends the live buckets of a file anew. In a damaged file those that
// the scan did not come by are read one by one: the error names the slot, and
// damage where nothing is in use harms nobody.
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
		return nil // it died meanwhile
	case errors.Is(err, bucketfile.ErrCorrupt):
		t.log.Warn("sparsetable: a bucket file is damaged; its live buckets are moved to another file", "error", err)
		return t.emptyRest(ctx, file)
	}
	return err
}

// liesAt reports whether the bucket of a slot is still the one at loc. REQUIRES:
// rewrite or indexMu is held.
func (t *ssd) liesAt(slot uint32, loc bucketfile.Location) bool {
	return slot < t.index.Slots() && bucketfile.Location(t.index.Location(slot)) == loc
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
	t.moving.Lock()
	defer t.moving.Unlock()
	w := &t.rewrite.rewriter
	w.urgent = true
	defer func() { w.urgent = false }()
	if invariants.Enabled {
		t.checkCached(b.Slot, b)
	}
	t.collectDirty(b.Slot, slotMask(b.Slot, t.index.Slots()))
	w.merge(b, nil)
	if _, err := t.replaceBucket(b.Slot, b.Len()); err != nil {
		return err
	}
	w.counts.compactedBytes += int64(loc.Units()) * int64(t.files.Unit())
	return t.files.Release(loc)
}
