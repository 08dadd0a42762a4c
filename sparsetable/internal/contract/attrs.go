package contract

import "math"

// Attrs returns the figures for a log line about a table at work, as keys and values of package
// slog. There are many more for KindSSD than for KindMemory. Ratios are since the table was opened.
func (s *Stats) Attrs() []any {
	attrs := []any{"table_rows", s.Rows, "table_bytes", s.MemoryBytes}
	if s.Kind != KindSSD {
		return attrs
	}
	pulls := max(1, s.Pulls)
	return append(attrs,
		"table_dirty_rows", s.DirtyRows,
		"table_restored_rows", s.RestoredRows,

		"table_budget_bytes", s.BudgetBytes,
		"table_lacking_bytes", s.LackingBytes,
		"table_cache_bytes", s.CacheBytes,
		"table_index_bytes", s.IndexBytes,
		"table_filter_bytes", s.FilterBytes,
		"table_filter_bits_per_key", digits(s.FilterBitsPerKey),
		"table_buffer_bytes", s.BufferBytes,
		"table_carry_bytes", s.CarryBytes,
		"table_catalog_bytes", s.CatalogBytes,
		"table_set_bytes", s.SetBytes,
		"table_scratch_bytes", s.ScratchBytes,

		"table_pulls", s.Pulls,
		"table_lookups", s.Lookups,
		"table_hit_ratio", digits(s.HitRatio()),
		"table_hit_ratio_in_flight", digits(Ratio(s.HitsInFlight, s.Lookups)),
		"table_hit_ratio_idle", digits(Ratio(s.HitsIdle, s.Lookups)),
		"table_lookahead_passes", s.LookaheadPasses,
		"table_not_announced_keys", s.NotAnnouncedKeys,
		"table_prefetched_rows", s.Prefetched,
		"table_filter_negatives", s.FilterNegatives,
		"table_false_positives", s.FalsePositives,
		"table_false_positive_rate", digits(s.FalsePositiveRate()),
		"table_evictions", s.Evictions,

		"table_reads_per_pull", digits(Ratio(s.DeviceReads, pulls)),
		"table_read_bytes_per_pull", digits(Ratio(s.ReadBytes, pulls)),
		"table_rewrite_read_bytes", s.RewriteReadBytes,

		"table_updated_rows", s.UpdatedRows,
		"table_flushed_rows", s.FlushedRows,
		"table_flushed_slots", s.FlushedSlots,
		"table_snapshots", s.Snapshots,
		"table_saved_early_rows", s.SavedEarly,
		"table_written_bytes", s.WrittenBytes,
		"table_flushed_bytes", s.FlushedBytes,
		"table_compacted_bytes", s.CompactedBytes,
		"table_snapshot_bytes", s.SnapshotBytes,
		"table_catalog_written_bytes", s.CatalogWrittenBytes,
		"table_imported_bytes", s.ImportedBytes,
		"table_write_amplification", digits(s.WriteAmplification),

		"table_disk_bytes", s.DiskBytes,
		"table_padding_bytes", s.DiskPaddingBytes,
		"table_space_amplification", digits(s.SpaceAmplification),
		"table_row_space_amplification", digits(s.RowSpaceAmplification),
	)
}

// digits rounds x to four decimals, for log lines.
func digits(x float64) float64 { return math.Round(1e4*x) / 1e4 }

// HitRatio is the share of the keys pulled that were in memory; 0 before the first Pull.
func (s *Stats) HitRatio() float64 { return Ratio(s.Hits, s.Lookups) }

// FalsePositiveRate is the share of keys for which a bucket was read needlessly, among the keys
// that are in no bucket and were checked against a filter; 0 before the first.
func (s *Stats) FalsePositiveRate() float64 {
	return Ratio(s.FalsePositives, s.FalsePositives+s.FilterNegatives)
}

// Ratio is part / whole, or 0 if whole is 0.
func Ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
