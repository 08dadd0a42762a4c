package memory

import "aibox/sparsetable/internal/layout"

// ForecastBytes is the most memory that a new table without a limit takes when it gets that many
// rows.
func ForecastBytes(l layout.Layout, rows int64) int64 {
	row := int64(l.Bytes() + 8 + 4 + 1) // with its key, its mark and its place in a snapshot
	return rows*row + segmentsFor(rows)*segmentBytes + slabTargetBytes + 8*segmentSlots + minSortRows*sortEntryBytes + int64(blockBytes(l))
}
