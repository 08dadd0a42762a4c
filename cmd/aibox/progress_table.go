package main

import (
	"fmt"
	"io"
	"strings"

	"aibox/sparsetable"
)

// tableLines are the lines of the display about a table: a line about one in
// memory, and about one on SSD what it holds where, what its cache and filters
// are worth, and what it reads and writes. Figures are since it was opened.
func tableLines(s *sparsetable.Stats) [][]string {
	if s.Kind != sparsetable.KindSSD {
		return [][]string{{fmt.Sprintf("table %d rows, %s", s.Rows, bytesText(s.MemoryBytes))}}
	}
	lines := [][]string{
		{fmt.Sprintf("table %d rows", s.Rows), fmt.Sprintf("%d dirty", s.DirtyRows), diskText(s)},
		{fmt.Sprintf("memory %s of %s: cache %s, index %s, other %s", bytesText(s.MemoryBytes), bytesText(s.BudgetBytes),
			bytesText(s.CacheBytes), bytesText(s.IndexBytes), bytesText(s.MemoryBytes-s.CacheBytes-s.IndexBytes))},
		{fmt.Sprintf("lookups %d", s.Lookups), hitsText(s), filtersText(s)},
		{readsText(s), prefetchedText(s), fmt.Sprintf("evicted %d", s.Evictions)},
		{fmt.Sprintf("flushed %d rows in %d buckets", s.FlushedRows, s.FlushedSlots)},
		append([]string{fmt.Sprintf("written %s, x%.2f", bytesText(s.WrittenBytes), s.WriteAmplification)}, writtenParts(s)...),
	}
	if s.RestoredRows > 0 {
		lines[0] = append(lines[0], fmt.Sprintf("%d restored", s.RestoredRows))
	}
	return lines
}

// prefetchedText is what lookahead brought, and how many passes ahead it looks.
func prefetchedText(s *sparsetable.Stats) string {
	text := fmt.Sprintf("prefetched %d rows", s.Prefetched)
	if s.LookaheadPasses > 0 {
		text += fmt.Sprintf(", %d of %d passes ahead", s.AnnouncedPasses, s.LookaheadPasses)
	}
	if s.NotAnnouncedKeys > 0 {
		text += fmt.Sprintf(", %d keys without room", s.NotAnnouncedKeys)
	}
	return text
}

func hitsText(s *sparsetable.Stats) string {
	return fmt.Sprintf("hits %s: %s in flight, %s idle", percent(s.HitRatio()), percent(share64(s.HitsInFlight, s.Lookups)), percent(share64(s.HitsIdle, s.Lookups)))
}

func filtersText(s *sparsetable.Stats) string {
	return fmt.Sprintf("filters spared %d, %d false: %s", s.FilterNegatives, s.FalsePositives, percent(s.FalsePositiveRate()))
}

func readsText(s *sparsetable.Stats) string { return "reads a pull: " + pullReads(s) }

// pullReads is what a pull reads from the device on average.
func pullReads(s *sparsetable.Stats) string {
	pulls := max(1, s.Pulls)
	return fmt.Sprintf("%.0f of %s", float64(s.DeviceReads)/float64(pulls), bytesText(s.ReadBytes/pulls))
}

// writtenParts is what was written, by purpose, in parts that a line holds: one
// for rows that leave memory and room on SSD, one for saving, and imports if
// there were large ones.
func writtenParts(s *sparsetable.Stats) []string {
	parts := []string{
		fmt.Sprintf("for flushes %s, compaction %s", bytesText(s.FlushedBytes), bytesText(s.CompactedBytes)),
		fmt.Sprintf("for snapshots %s, catalog %s", bytesText(s.SnapshotBytes), bytesText(s.CatalogWrittenBytes)),
	}
	if s.ImportedBytes > 0 {
		parts = append(parts, "for imports "+bytesText(s.ImportedBytes))
	}
	return parts
}

func diskText(s *sparsetable.Stats) string {
	return fmt.Sprintf("disk %s, x%.2f", bytesText(s.DiskBytes), s.SpaceAmplification)
}

// tableSummary prints the lines about the table of a finished job.
func tableSummary(w io.Writer, s *sparsetable.Stats) {
	if s.Kind != sparsetable.KindSSD {
		fmt.Fprintf(w, "table         %d rows, %s in memory\n", s.Rows, bytesText(s.MemoryBytes))
		return
	}
	fmt.Fprintf(w, "table         %d rows, %s of %s in memory, %s on disk\n", s.Rows, bytesText(s.MemoryBytes), bytesText(s.BudgetBytes), bytesText(s.DiskBytes))
	name := "  memory"
	for parts := memoryParts(s); len(parts) > 0; {
		n := min(len(parts), 4)
		fmt.Fprintf(w, "%-13s %s\n", name, strings.Join(parts[:n], ", "))
		parts, name = parts[n:], ""
	}
	fmt.Fprintf(w, "  rows        %d prefetched, %d evicted, %d restored\n", s.Prefetched, s.Evictions, s.RestoredRows)
	fmt.Fprintf(w, "  cache       %d of %d keys found: %s; %s in flight, %s idle\n", s.Hits, s.Lookups, percent(s.HitRatio()),
		percent(share64(s.HitsInFlight, s.Lookups)), percent(share64(s.HitsIdle, s.Lookups)))
	fmt.Fprintf(w, "  filters     %d reads spared, %d in vain: %s false positives\n", s.FilterNegatives, s.FalsePositives, percent(s.FalsePositiveRate()))
	fmt.Fprintf(w, "  reads       %d of %s; a pull: %s\n", s.DeviceReads, bytesText(s.ReadBytes), pullReads(s))
	fmt.Fprintf(w, "  flushes     %d rows in %d buckets, %s read for them\n", s.FlushedRows, s.FlushedSlots, bytesText(s.RewriteReadBytes))
	fmt.Fprintf(w, "  writes      %s: write amplification %.2f; space amplification %.2f\n", bytesText(s.WrittenBytes), s.WriteAmplification, s.SpaceAmplification)
	for _, part := range writtenParts(s) {
		fmt.Fprintf(w, "              %s\n", part)
	}
}
