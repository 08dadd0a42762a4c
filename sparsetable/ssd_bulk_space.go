package sparsetable

import (
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
)

const (
	// spoolDeadShare is the part of what buckets take beforehand that may stay in
	// vain when they have been superseded: compaction takes no more of a directory
	// that is nearly full, see maxLiveShare.
	spoolDeadShare = 1.0 / 8
	// spoolMargin is the part of a spool's buckets that the estimate of their size
	// may be wrong by.
	spoolMargin = 1.0 / 32
	// spoolLooks is how often space is looked at while a spool grows to its limit:
	// others may use the file system.
	spoolLooks = 64
)

// full reports whether the spool has its size.
func (l *bulkLoad) full() (bool, error) {
	if l.spool.bytes < min(l.look, l.limit) {
		return false, nil
	}
	limit, err := l.spaceForSpool(l.spool.bytes)
	if err != nil {
		return false, err
	}
	l.limit = min(l.limit, limit)
	l.look = l.spool.bytes + max(l.limit/spoolLooks, int64(l.spool.shape.blockBytes))
	return l.spool.bytes >= l.limit, nil
}

// spaceForSpool is how large a spool may become that takes so many bytes
// already, so that there is room for it and for what is made of it. What is in
// its buffers then comes on top.
func (l *bulkLoad) spaceForSpool(have int64) (int64, error) {
	t := l.t
	dirs := int64(len(t.devices))
	shape, ok := t.bulk.shape(int64(len(l.arena)), bulkEntryBytes(t.layout), len(t.devices))
	if !ok {
		return 0, nil
	}
	t.indexMu.RLock()
	ratio := t.spoolRatio(shape)
	t.indexMu.RUnlock()
	_, each := t.files.Space()
	least := int64(1) << 62
	for i := range t.devices {
		free, err := t.roomIn(i, each[i])
		if err != nil {
			return 0, err
		}
		free += have / dirs
		free -= int64(spoolDeadShare*float64(each[i].LiveBytes)) + t.spaceSlack()
		least = min(least, int64(float64(free)/ratio))
	}
	// Blocks are listed in 4 bytes each, in slices that grow by doubling at most,
	// the old one being there until the new one is filled. More rounds would cost
	// far more than more blocks: every bucket is read and written anew.
	listed := l.borrowed / bulkListShare / 12 * int64(shape.blockBytes)
	return min(max(0, least)*dirs-int64(len(l.arena)), listed), nil
}

// spoolRatio is what a spool and its buckets take at most, at a time, for each
// byte of the spool: the buckets that are made of it, with their headers and the
// ends of their units, and what is not deleted yet of the spool, or of a part of
// it that is spooled again. REQUIRES: indexMu is held for reading.
func (t *ssd) spoolRatio(shape spoolShape) float64 {
	rows := float64(t.index.TargetRows() * bulkEntryBytes(t.layout))
	buckets := (rows + bucketHeaderSpace + float64(t.files.Unit())/2) / rows
	return buckets*(1+spoolMargin) + 1.0/spoolGroups + 1/float64(int(1)<<shape.bits)
}

// roomIn is how many bytes of a directory, of which sp is taken, are to be had.
func (t *ssd) roomIn(directory int, sp bucketfile.Space) (int64, error) {
	d := t.devices[directory]
	free, err := d.Free()
	if err != nil {
		return 0, fmt.Errorf("sparsetable: free space of %s: %w", d.Dir(), err)
	}
	free -= reservedBytes
	if sp.BudgetBytes > 0 {
		free = min(free, sp.BudgetBytes-sp.TotalBytes-sp.OtherBytes-t.files.UrgentBytes())
	}
	return max(0, free), nil
}
