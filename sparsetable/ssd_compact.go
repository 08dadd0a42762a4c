package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// compactOne moves the live buckets out of the file with the fewest of them, if
// all files together take more than the allowed multiple of what is in use. A
// file that snapshots hold goes when they do.
func (t *ssd) compactOne(ctx context.Context) (did bool, err error) {
	c, ok := t.worstFile()
	if !ok {
		return false, nil
	}
	return true, t.emptyFile(ctx, c.File)
}

// worstFile is the file to be emptied next, if that is necessary.
func (t *ssd) worstFile() (worst bucketfile.Candidate, ok bool) {
	all, _ := t.files.Space()
	total := all.TotalBytes
	for _, c := range t.files.CompactionCandidates() {
		if c.LiveBytes == 0 {
			total -= c.Bytes // held by snapshots alone
		} else if !ok || c.LiveBytes*worst.Bytes < worst.LiveBytes*c.Bytes {
			worst, ok = c, true
		}
	}
	limit := t.opts.SSD.MaxSpaceAmplification
	// A few buffers more or less are nothing to work against.
	slack := int64(4*appendBuffers*t.plan.bufferBytes) * int64(len(t.devices))
	return worst, ok && float64(total-slack) > limit*float64(all.LiveBytes)
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
