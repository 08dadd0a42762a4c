package bulk

import (
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/spool"
)

const (
	// spoolDeadShare is the part of the space of superseded buckets that may stay in use after the
	// import: compaction leaves that much in a nearly full directory, see package space.
	spoolDeadShare = 1.0 / 8
	// spoolMargin is the allowed relative error of the estimated size of a spool's buckets.
	spoolMargin = 1.0 / 32
	// spoolLooks is how often the free space is checked while a spool grows to its limit, because
	// other programs may use the file system.
	spoolLooks = 64
)

// full reports whether the spool has reached its limit.
func (l *load) full() (bool, error) {
	if l.spool.Bytes() < min(l.look, l.limit) {
		return false, nil
	}
	limit, err := l.spaceForSpool(l.spool.Bytes())
	if err != nil {
		return false, err
	}
	l.limit = min(l.limit, limit)
	l.look = l.spool.Bytes() + max(l.limit/spoolLooks, int64(l.spool.BlockBytes()))
	return l.spool.Bytes() >= l.limit, nil
}

// spaceForSpool is the size to which a spool that already has that many bytes may grow, so that
// there is room for it and for the buckets made from it. The rows in its buffers are not included.
func (l *load) spaceForSpool(have int64) (int64, error) {
	dirs := int64(l.dirs())
	shape, ok := spool.ShapeOf(int64(len(l.arena)), l.Entry, l.dirs(), l.Plan.MinBlock)
	if !ok {
		return 0, nil
	}
	l.IndexMu.RLock()
	ratio := l.spoolRatio(shape)
	l.IndexMu.RUnlock()
	_, each := l.Files.Space()
	least := int64(1) << 62
	for i := range l.dirs() {
		free, err := l.Space.RoomIn(i, each[i])
		if err != nil {
			return 0, err
		}
		free += have / dirs
		free -= int64(spoolDeadShare*float64(each[i].LiveBytes)) + l.Space.Slack()
		least = min(least, int64(float64(free)/ratio))
	}
	// A block takes 4 bytes in a list. The list is a slice whose capacity at most doubles when it
	// grows, and its old memory is freed only after copying. So a block counts as 12 bytes. Larger
	// lists are better than more rounds, because each round reads and rewrites every bucket.
	listed := l.borrowed / listShare / 12 * int64(shape.BlockBytes)
	return min(max(0, least)*dirs-int64(len(l.arena)), listed), nil
}

// spoolRatio is the maximum space that a spool and its buckets take at any time, per byte of the
// spool: the buckets made from it, with their headers and padding, plus the part of the spool that
// is not yet deleted, or that is spooled again. REQUIRES: IndexMu is held for reading.
func (l *load) spoolRatio(shape spool.Shape) float64 {
	rows := float64(l.Index.TargetRows() * l.Entry)
	buckets := (rows + plan.BucketHeaderSpace + float64(l.Files.Unit())/2) / rows
	return buckets*(1+spoolMargin) + 1.0/spool.Groups + 1/float64(int(1)<<shape.Bits)
}
