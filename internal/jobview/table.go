package jobview

import (
	"fmt"
	"io"
	"strings"

	"aibox/internal/humanize"
	"aibox/sparsetable"
)

// tableLines returns the lines of the display about a table, each in parts. A table in memory has
// one line, which ends with the resident memory of the process, the table included. The lines about
// a table on SSD say what it holds in memory and on disk, how well its cache and filters work, and
// what it reads and writes. Figures count from when the table was opened.
func tableLines(s *sparsetable.Stats, resident int64) [][]string {
	process := processText(resident)
	if s.Kind != sparsetable.KindSSD {
		return [][]string{append([]string{fmt.Sprintf("table %d rows, %s", s.Rows, humanize.Bytes(s.MemoryBytes))}, process...)}
	}
	lines := [][]string{
		{fmt.Sprintf("table %d rows", s.Rows), fmt.Sprintf("%d dirty", s.DirtyRows), diskText(s)},
		append([]string{fmt.Sprintf("memory %s of %s: cache %s, index %s, other %s", humanize.Bytes(s.MemoryBytes), humanize.Bytes(s.BudgetBytes),
			humanize.Bytes(s.CacheBytes), humanize.Bytes(s.IndexBytes), humanize.Bytes(s.MemoryBytes-s.CacheBytes-s.IndexBytes))}, process...),
		{fmt.Sprintf("lookups %d", s.Lookups), hitsText(s), filtersText(s)},
		{readsText(s), prefetchedText(s), fmt.Sprintf("evicted %d", s.Evictions)},
		{fmt.Sprintf("flushed %d rows in %d buckets", s.FlushedRows, s.FlushedSlots)},
		append([]string{fmt.Sprintf("written %s, x%.2f", humanize.Bytes(s.WrittenBytes), s.WriteAmplification)}, WrittenParts(s)...),
	}
	if s.RestoredRows > 0 {
		lines[0] = append(lines[0], fmt.Sprintf("%d restored", s.RestoredRows))
	}
	return lines
}

// processText is the memory of the process, nothing if it is unknown.
func processText(resident int64) []string {
	if resident <= 0 {
		return nil
	}
	return []string{"process " + humanize.Bytes(resident)}
}

// prefetchedText says how many rows lookahead has read, and how many passes ahead it
// looks.
func prefetchedText(s *sparsetable.Stats) string {
	text := fmt.Sprintf("prefetched %d rows", s.Prefetched)
	if s.LookaheadPasses > 0 {
		text += fmt.Sprintf(", %d of %d passes ahead", s.AnnouncedPasses, s.LookaheadPasses)
	}
	if s.NotAnnouncedKeys > 0 {
		text += fmt.Sprintf(", no room for %d keys", s.NotAnnouncedKeys)
	}
	return text
}

func hitsText(s *sparsetable.Stats) string {
	return fmt.Sprintf("hits %s: %s in flight, %s idle", humanize.Percent(s.HitRatio()), humanize.PercentOf(s.HitsInFlight, s.Lookups), humanize.PercentOf(s.HitsIdle, s.Lookups))
}

func filtersText(s *sparsetable.Stats) string {
	return fmt.Sprintf("filters avoided %d reads, %d unnecessary: %s", s.FilterNegatives, s.FalsePositives, humanize.Percent(s.FalsePositiveRate()))
}

func readsText(s *sparsetable.Stats) string { return "reads per pull: " + PullReads(s) }

// PullReads says how many reads, and of how many bytes, a pull makes on average.
func PullReads(s *sparsetable.Stats) string {
	pulls := max(1, s.Pulls)
	return fmt.Sprintf("%.0f of %s", float64(s.DeviceReads)/float64(pulls), humanize.Bytes(s.ReadBytes/pulls))
}

// WrittenParts says how much was written for what purpose, in parts that fit a line:
// one for flushes and compaction, one for snapshots and the catalog, and one for
// imports if there were any that wrote buckets of their own.
func WrittenParts(s *sparsetable.Stats) []string {
	parts := []string{
		fmt.Sprintf("for flushes %s, compaction %s", humanize.Bytes(s.FlushedBytes), humanize.Bytes(s.CompactedBytes)),
		fmt.Sprintf("for snapshots %s, catalog %s", humanize.Bytes(s.SnapshotBytes), humanize.Bytes(s.CatalogWrittenBytes)),
	}
	if s.ImportedBytes > 0 {
		parts = append(parts, "for imports "+humanize.Bytes(s.ImportedBytes))
	}
	return parts
}

func diskText(s *sparsetable.Stats) string {
	return fmt.Sprintf("disk %s, x%.2f", humanize.Bytes(s.DiskBytes), s.SpaceAmplification)
}

// tableSummary prints the lines about the table of a finished job.
func tableSummary(w io.Writer, s *sparsetable.Stats) {
	if s.Kind != sparsetable.KindSSD {
		fmt.Fprintf(w, "table         %d rows, %s in memory\n", s.Rows, humanize.Bytes(s.MemoryBytes))
		return
	}
	fmt.Fprintf(w, "table         %d rows, %s of %s in memory, %s on disk\n", s.Rows, humanize.Bytes(s.MemoryBytes), humanize.Bytes(s.BudgetBytes), humanize.Bytes(s.DiskBytes))
	name := "  memory"
	for parts := MemoryParts(s); len(parts) > 0; {
		n := min(len(parts), 4)
		fmt.Fprintf(w, "%-13s %s\n", name, strings.Join(parts[:n], ", "))
		parts, name = parts[n:], ""
	}
	fmt.Fprintf(w, "  rows        %d prefetched, %d evicted, %d restored\n", s.Prefetched, s.Evictions, s.RestoredRows)
	fmt.Fprintf(w, "  cache       %d of %d keys found: %s; %s in flight, %s idle\n", s.Hits, s.Lookups, humanize.Percent(s.HitRatio()),
		humanize.PercentOf(s.HitsInFlight, s.Lookups), humanize.PercentOf(s.HitsIdle, s.Lookups))
	fmt.Fprintf(w, "  filters     %d reads avoided, %d unnecessary: %s false positives\n", s.FilterNegatives, s.FalsePositives, humanize.Percent(s.FalsePositiveRate()))
	fmt.Fprintf(w, "  reads       %d of %s; per pull: %s\n", s.DeviceReads, humanize.Bytes(s.ReadBytes), PullReads(s))
	fmt.Fprintf(w, "  flushes     %d rows in %d buckets, %s read for them\n", s.FlushedRows, s.FlushedSlots, humanize.Bytes(s.RewriteReadBytes))
	fmt.Fprintf(w, "  writes      %s: write amplification %.2f; space amplification %.2f\n", humanize.Bytes(s.WrittenBytes), s.WriteAmplification, s.SpaceAmplification)
	for _, part := range WrittenParts(s) {
		fmt.Fprintf(w, "              %s\n", part)
	}
}

// MemoryParts says how much of a table's memory serves what purpose.
func MemoryParts(s *sparsetable.Stats) []string {
	part := func(name string, n int64) string { return name + " " + humanize.Bytes(n) }
	parts := []string{
		part("cache", s.CacheBytes), part("index", s.IndexBytes), part("buffers", s.BufferBytes),
		part("carried", s.CarryBytes), part("catalog", s.CatalogBytes), part("working sets", s.SetBytes), part("scratch", s.ScratchBytes),
	}
	if s.OutsideBytes > 0 {
		parts = append(parts, part("delta index", s.OutsideBytes))
	}
	return parts
}
