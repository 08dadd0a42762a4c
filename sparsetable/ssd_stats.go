package sparsetable

// Stats implements Table.
func (t *ssd) Stats() Stats {
	t.mu.Lock()
	st := t.mu.stats
	st.Kind, st.BudgetBytes, st.PinnedSets = KindSSD, t.opts.MemoryBytes, int64(len(t.mu.live))
	closed := t.mu.closed
	t.mu.Unlock()
	if closed || t.enter() != nil {
		return st
	}
	defer t.leave()
	c := t.cache.Stats()
	t.rewrite.Lock()
	st.Rows = t.rewrite.stored + c.Rows - c.Marked2
	w := t.rewrite.counts
	t.rewrite.Unlock()
	t.indexMu.RLock()
	st.Slots, st.IndexBytes, st.FilterBytes = int64(t.index.Slots()), t.index.Bytes(), t.index.FilterTotalBytes()
	t.indexMu.RUnlock()
	st.MemoryBytes = t.otherBytes() + c.Bytes
	st.CacheBytes, st.CacheRows, st.DirtyRows = c.Bytes, c.Rows, c.Dirty
	st.HitsInFlight, st.HitsIdle, st.Evictions = c.HitsInFlight, c.HitsIdle, c.Evictions
	st.FlushedRows, st.FlushedSlots, st.Splits = w.flushedRows, w.flushedSlots, w.splits
	st.RewriteReads, st.RewriteReadBytes, st.WrittenBytes, st.CompactedBytes = w.reads, w.readBytes, w.writtenBytes, w.compactedBytes
	if n := w.flushedRows * int64(entryBytes(t.layout)); n > 0 {
		st.WriteAmplification = float64(w.writtenBytes) / float64(n)
	}
	space, _ := t.files.Space()
	st.DiskBytes, st.DiskLiveBytes, st.SpaceAmplification = space.TotalBytes, space.LiveBytes, space.Amplification()
	return st
}
