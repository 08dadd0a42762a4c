package sparsetable

import (
	"context"
	"fmt"

	"aibox/internal/errkind"
	"aibox/sparsetable/internal/bucketfile"
)

// ErrUnsupported: the table's kind cannot do it.
var ErrUnsupported = errkind.New(errkind.Usage, "sparsetable: the table does not support this")

// Compacter is what a Table implements that can be made to take less space: that
// of KindSSD.
type Compacter interface {
	// Compact moves the buckets in use out of every file of which at least
	// minGain is dead, 0 < minGain <= 1, but those that are appended to, one in
	// each directory, and calls progress, which may be nil, after each. What the
	// files take becomes free once no snapshot holds them: take one, and drop those
	// before it. Rows stay as they are. Pulls, updates and snapshots may run beside
	// it.
	//
	// It needs room for what it moves: up to the bytes in use, at the worst, as
	// long as a snapshot holds the files.
	Compact(ctx context.Context, minGain float64, progress func(CompactProgress)) (CompactProgress, error)
}

// CompactProgress says how far Compact has come.
type CompactProgress struct {
	Files, FilesTotal int   // emptied, and to be emptied
	MovedBytes        int64 // of buckets in use that were written anew
	FreedBytes        int64 // that the emptied files take beside what was moved
}

// Compact compacts t, or returns an error that wraps ErrUnsupported where its
// kind has nothing to compact.
func Compact(ctx context.Context, t Table, minGain float64, progress func(CompactProgress)) (CompactProgress, error) {
	c, ok := t.(Compacter)
	if !ok {
		return CompactProgress{}, fmt.Errorf("%w: a table of kind %q has nothing to compact", ErrUnsupported, t.Stats().Kind)
	}
	return c.Compact(ctx, minGain, progress)
}

// Compact implements Compacter.
func (t *ssd) Compact(ctx context.Context, minGain float64, progress func(CompactProgress)) (CompactProgress, error) {
	var p CompactProgress
	if t.readOnly {
		return p, ErrReadOnly
	}
	if !(minGain > 0 && minGain <= 1) {
		return p, fmt.Errorf("sparsetable: compact files with a gain of %g: want more than 0, at most 1", minGain)
	}
	if err := t.enter(); err != nil {
		return p, err
	}
	defer t.leave()
	if err := t.failure(); err != nil {
		return p, err
	}
	// Files whose last buckets are still on their way to the device are not listed.
	if err := t.files.Flush(ctx); err != nil {
		return p, tableError(err)
	}
	// The list is made once: what is written meanwhile is full of what is in use.
	all := t.files.CompactionCandidates()
	files := all[:0]
	for _, c := range all {
		// What a new file has, too: a header, and what pads its writes.
		same := bucketfile.HeaderBytes + (c.Bytes/int64(t.plan.bufferBytes)+1)*bucketfile.WriteAlign
		dead := c.Bytes - c.LiveBytes - same
		if c.LiveBytes > 0 && dead > 0 && float64(dead) >= minGain*float64(c.Bytes) {
			files = append(files, c)
		}
	}
	p.FilesTotal = len(files)
	for _, c := range files {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		before := t.movedBytes()
		t.compacting.Lock()
		err := t.emptyFile(ctx, c.File)
		t.compacting.Unlock()
		if err != nil {
			return p, tableError(err)
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

func (t *ssd) movedBytes() int64 {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.rewrite.counts.compactedBytes
}
