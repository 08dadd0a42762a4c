package contract

import "aibox/sparsetable/internal/layout"

// lifeCounters are the counters that a table keeps over its whole life. Every snapshot stores them,
// and a table that is opened from the snapshot continues them. The names are those of the catalog's
// counters.
var lifeCounters = []struct {
	name string
	of   func(*Stats) *int64
}{
	{"life_pulls", func(s *Stats) *int64 { return &s.Pulls }},
	{"life_lookups", func(s *Stats) *int64 { return &s.Lookups }},
	{"life_hits", func(s *Stats) *int64 { return &s.Hits }},
	{"life_hits_in_flight", func(s *Stats) *int64 { return &s.HitsInFlight }},
	{"life_hits_idle", func(s *Stats) *int64 { return &s.HitsIdle }},
	{"life_created", func(s *Stats) *int64 { return &s.Created }},
	{"life_missing", func(s *Stats) *int64 { return &s.Missing }},
	{"life_expired", func(s *Stats) *int64 { return &s.Expired }},
	{"life_filter_negatives", func(s *Stats) *int64 { return &s.FilterNegatives }},
	{"life_false_positives", func(s *Stats) *int64 { return &s.FalsePositives }},
	{"life_bucket_reads", func(s *Stats) *int64 { return &s.BucketReads }},
	{"life_device_reads", func(s *Stats) *int64 { return &s.DeviceReads }},
	{"life_read_bytes", func(s *Stats) *int64 { return &s.ReadBytes }},
	{"life_prefetched", func(s *Stats) *int64 { return &s.Prefetched }},
	{"life_saved_early", func(s *Stats) *int64 { return &s.SavedEarly }},
	{"life_evictions", func(s *Stats) *int64 { return &s.Evictions }},
	{"life_flushed_rows", func(s *Stats) *int64 { return &s.FlushedRows }},
	{"life_flushed_slots", func(s *Stats) *int64 { return &s.FlushedSlots }},
	{"life_splits", func(s *Stats) *int64 { return &s.Splits }},
	{"life_merges", func(s *Stats) *int64 { return &s.Merges }},
	{"life_rewrite_reads", func(s *Stats) *int64 { return &s.RewriteReads }},
	{"life_rewrite_read_bytes", func(s *Stats) *int64 { return &s.RewriteReadBytes }},
	{"life_updated_rows", func(s *Stats) *int64 { return &s.UpdatedRows }},
	{"life_flushed_bytes", func(s *Stats) *int64 { return &s.FlushedBytes }},
	{"life_compacted_bytes", func(s *Stats) *int64 { return &s.CompactedBytes }},
	{"life_imported_bytes", func(s *Stats) *int64 { return &s.ImportedBytes }},
	{"life_catalog_bytes", func(s *Stats) *int64 { return &s.CatalogWrittenBytes }},
	{"life_snapshots", func(s *Stats) *int64 { return &s.Snapshots }},
	{"life_snapshot_bytes", func(s *Stats) *int64 { return &s.SnapshotBytes }},
}

// Lifetime returns the counters over a table's life: those of the snapshot that was opened plus
// those since.
func Lifetime(opened map[string]int64, now Stats, l layout.Layout) Stats {
	life := Stats{Kind: now.Kind}
	for _, c := range lifeCounters {
		*c.of(&life) = opened[c.name] + *c.of(&now)
	}
	life.SumWritten(l)
	return life
}

// PutLife stores the lifetime counters s in the counters of a snapshot.
func (s *Stats) PutLife(counters map[string]int64) {
	for _, c := range lifeCounters {
		counters[c.name] = *c.of(s)
	}
}

// SumWritten computes WrittenBytes and WriteAmplification from the bytes written for each purpose.
func (s *Stats) SumWritten(l layout.Layout) {
	s.WrittenBytes = s.FlushedBytes + s.CompactedBytes + s.ImportedBytes + s.SnapshotBytes + s.CatalogWrittenBytes
	s.WriteAmplification = Ratio(s.WrittenBytes, s.UpdatedRows*int64(layout.EntryBytes(l)))
}
