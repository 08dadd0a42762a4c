package checkpoint

import (
	"context"
	"log/slog"

	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
)

// minMerged is the least number of layers that the next snapshot replaces by its own if the list is
// full.
const minMerged = maxDeltas / 2

// allBits is the slot mask that selects the rows of a single key.
const allBits = 1<<63 - 1

// unmerged is how many of the oldest layers stay when the newer ones are replaced by one: those
// that have more rows than all that follow them. So a row is written again only a few times,
// however many other rows do not change.
func unmerged(layers []Layer) int {
	n, rows := len(layers), int64(0)
	for n > 0 && (len(layers)-n < minMerged || DirtyRows(layers[n-1]) <= rows) {
		n--
		rows += DirtyRows(layers[n])
	}
	return n
}

// shorten makes room in a full list of delta files for the file of the next snapshot: the newest
// ones, which have few rows, leave the list, and their rows lose Saved, so that the next snapshot
// writes those that are still dirty. If an older file also has such a row, that older version is no
// longer valid: either the row is still dirty, and the next snapshot writes it, or its bucket was
// written since. REQUIRES: no snapshot is being fixed or written.
func (c *Store) shorten(ctx context.Context) {
	layers := Layers(c.lists.base)
	if len(layers) < maxDeltas {
		return
	}
	keep, files := unmerged(layers), 0
	for _, layer := range layers[:keep] {
		files += len(layer)
	}
	for _, layer := range layers[keep:] {
		err := c.EachDirty(ctx, layer, func(_ int, r *deltafile.Reader, rows int) error {
			for i := range rows {
				key, _, _ := r.Entry(i)
				c.Cache.ForEachOfSlot(c.Hash(key)&allBits, allBits, func(rowcache.Entry) rowcache.Change {
					return rowcache.Change{Clear: Saved}
				})
			}
			return nil
		})
		if err != nil {
			c.Logger.Warn("sparsetable: the rows of earlier snapshots could not be read, so the next snapshot writes all rows that are not in buckets", slog.Any("error", err))
			c.Restart()
			return
		}
	}
	c.rebase(c.lists.base[:files:files])
}
