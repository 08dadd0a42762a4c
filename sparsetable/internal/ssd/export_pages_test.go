package ssd

import (
	"context"
	"time"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/contract"
)

// PagesPeak is the memory that a table on SSD held while all its buckets were rewritten during a
// snapshot that had not written any page of the index yet.
type PagesPeak struct {
	MemoryBytes, CopiedBytes, ReservedBytes int64
	Waited                                  bool // the writer of buckets waited for the snapshot
}

// SnapshotPeak measures PagesPeak and ends the snapshot.
func SnapshotPeak(ctx context.Context, tab contract.Scanner) (p PagesPeak, err error) {
	t := tab.(*Table)
	if err := t.inFlight.Begin(); err != nil {
		return p, err
	}
	defer t.inFlight.End()
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	s, err := t.checkpoints.Fix(nil)
	if err != nil {
		return p, err
	}
	p.ReservedBytes = t.checkpoints.PageBytes()
	written := make(chan error, 1)
	go func() {
		written <- func() error {
			t.rewrite.Lock()
			defer t.rewrite.Unlock()
			all := make([]uint32, t.index.Slots())
			for slot := range all {
				all[slot] = uint32(slot)
			}
			return t.eachBucket(all, func(slot uint32, b *bucketfile.Bucket) error {
				if b == nil {
					return nil
				}
				return t.moveBucket(bucketfile.Location(t.index.Location(slot)), b)
			})
		}()
	}()
	// It has ended, or waits: then nothing changes any more.
	for looks := 0; looks < 20 && len(written) == 0; looks++ {
		time.Sleep(5 * time.Millisecond)
		t.indexMu.RLock()
		copied := t.index.CaptureBytes()
		t.indexMu.RUnlock()
		p.Waited = t.checkpoints.PagesFull()
		if copied != p.CopiedBytes || !p.Waited {
			looks = 0
		}
		p.CopiedBytes = max(p.CopiedBytes, copied)
		p.MemoryBytes = max(p.MemoryBytes, t.otherBytes()+t.cache.Stats().Bytes)
	}
	if _, err := s.Write(ctx); err != nil {
		return p, err
	}
	return p, <-written
}
