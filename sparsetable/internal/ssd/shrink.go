package ssd

import (
	"context"
	"fmt"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/contract"
)

// CompactProgress is the progress of Compact.
type CompactProgress struct {
	Files, FilesTotal int   // files emptied so far, and files to be emptied in all
	MovedBytes        int64 // bytes of live buckets that were moved
	FreedBytes        int64 // bytes of the emptied files that were not moved
}

// Compact implements sparsetable.Compacter.
func (t *Table) Compact(ctx context.Context, minGain float64, progress func(CompactProgress)) (CompactProgress, error) {
	var p CompactProgress
	if t.opts.ReadOnly {
		return p, contract.ErrReadOnly
	}
	if !(minGain > 0 && minGain <= 1) {
		return p, fmt.Errorf("sparsetable: compact files with a gain of %g: want more than 0, at most 1", minGain)
	}
	if err := t.inFlight.Begin(); err != nil {
		return p, err
	}
	defer t.inFlight.End()
	if err := t.failure(); err != nil {
		return p, err
	}
	// The list lacks files whose last buckets are still on their way to the device.
	if err := t.files.Flush(ctx); err != nil {
		return p, apierr.Of(err)
	}
	// The list is made only once, because files written meanwhile have only live buckets.
	all := t.files.CompactionCandidates()
	files := all[:0]
	for _, c := range all {
		// A new file has these dead bytes, too: a header, and the padding of its writes.
		same := bucketfile.HeaderBytes + (c.Bytes/int64(t.plan.BufferBytes)+1)*bucketfile.WriteAlign
		dead := c.Bytes - c.LiveBytes - same
		if c.LiveBytes > 0 && dead > 0 && float64(dead) >= minGain*float64(c.Bytes) {
			files = append(files, c)
		}
	}
	p.FilesTotal = len(files)
	for _, c := range files {
		if err := t.rewrite.compacting.Acquire(ctx); err != nil {
			return p, err
		}
		before := t.movedBytes()
		err := t.emptyFile(ctx, c.File)
		t.rewrite.compacting.Release()
		if err != nil {
			return p, apierr.Of(err)
		}
		p.Files++
		p.MovedBytes += t.movedBytes() - before
		p.FreedBytes += c.Bytes - c.LiveBytes
		if progress != nil {
			progress(p)
		}
	}
	return p, nil
}

func (t *Table) movedBytes() int64 {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.rewrite.counts.compactedBytes
}
