package ssd

import (
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// Stats implements Table. For a closed table it returns only the counters of calls and passes.
func (t *Table) Stats() contract.Stats {
	if t.inFlight.Begin() != nil {
		return t.callStats()
	}
	defer t.inFlight.End()
	return t.openStats()
}

// callStats returns the statistics that do not need memory that Close frees.
func (t *Table) callStats() contract.Stats {
	t.sets.Lock()
	st := t.sets.stats
	st.Kind, st.BudgetBytes, st.PinnedSets = contract.KindSSD, t.opts.MemoryBytes, int64(len(t.sets.live))
	t.sets.Unlock()
	st.LackingBytes = t.lacking.Load()
	st.AnnouncedPasses = int64(t.elevator.Announced())
	ahead := t.elevator.Counts()
	st.BucketReads, st.DeviceReads, st.ReadBytes = st.BucketReads+ahead.Buckets, st.DeviceReads+ahead.DeviceReads, st.ReadBytes+ahead.Bytes
	st.Prefetched = ahead.Rows
	st.RestoredRows = t.restorer.Restored()
	saved := t.checkpoints.Counts()
	st.Snapshots, st.SavedEarly, st.SnapshotBytes = saved.Snapshots, saved.SavedEarly, saved.WrittenBytes
	return st
}

// openStats is Stats for callers that Close waits for, even if Close has begun.
func (t *Table) openStats() contract.Stats {
	st := t.callStats()
	t.rewrite.Lock()
	c := t.cache.Stats() // under the lock, because writers mark rows as stored under it
	stored := t.rewrite.stored
	st.Rows = stored + c.Rows - c.Marked2 + t.outside.Fresh()
	st.LookaheadPasses, st.AnnouncedKeys, st.NotAnnouncedKeys = int64(c.LookaheadPasses), c.Announced, c.NotAnnounced
	w := t.rewrite.counts
	reads, readBytes := t.rewrite.queue.DeviceReads()
	space, _ := t.files.Space()
	p := t.memoryParts() // under the lock, too, because whatever takes memory from the cache holds it
	t.rewrite.Unlock()
	t.indexMu.RLock()
	st.Slots, st.FilterBytes = int64(t.index.Slots()), t.index.FilterTotalBytes()
	if stored > 0 {
		st.FilterBitsPerKey = 8 * float64(st.Slots) * float64(t.index.FilterBytes()) / float64(stored)
	}
	t.indexMu.RUnlock()
	st.MemoryBytes = p.total() + c.Bytes
	st.IndexBytes, st.BufferBytes, st.CarryBytes, st.CatalogBytes, st.SetBytes, st.ScratchBytes, st.OutsideBytes = p.index, p.buffers, p.carry, p.catalog, p.sets, p.scratch, p.outside
	st.CacheBytes, st.CacheRows, st.DirtyRows = c.Bytes, c.Rows, c.Dirty
	st.HitsInFlight, st.HitsIdle, st.Evictions = c.HitsInFlight, c.HitsIdle, c.Evictions
	st.FlushedRows, st.FlushedSlots, st.Splits, st.Merges = w.flushedRows, w.flushedSlots, w.splits, w.merges
	st.RewriteReads, st.RewriteReadBytes = w.reads+int64(reads), w.readBytes+int64(readBytes)
	st.UpdatedRows += w.importedRows
	st.CompactedBytes, st.ImportedBytes = w.compactedBytes, w.importedBytes
	// The total is read after the counters of its parts, so that the parts do not exceed it.
	st.FlushedBytes = t.files.AppendedBytes() - w.compactedBytes - w.importedBytes
	st.ImportedBytes += t.spooled.Load()
	st.CatalogWrittenBytes = t.catalog.WrittenBytes() + t.copies.WrittenBytes()
	st.SumWritten(t.layout)
	st.DiskBytes, st.DiskNeededBytes, st.DiskLiveBytes = space.TotalBytes+space.OtherBytes, space.NeededBytes(), space.LiveBytes
	st.SpaceAmplification = space.Amplification()
	rowBytes := stored * int64(layout.EntryBytes(t.layout))
	st.DiskPaddingBytes, st.RowSpaceAmplification = max(0, space.LiveBytes-rowBytes), contract.Ratio(space.TotalBytes, rowBytes)
	return st
}

// lifetime returns the counters over the table's life; now has those since the table was opened.
func (t *Table) lifetime(now contract.Stats) contract.Stats {
	return contract.Lifetime(t.opened.Counters, now, t.layout)
}
