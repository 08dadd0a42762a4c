package restore

import (
	"context"
	"time"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/outside"
)

// turn is how long rows are restored before Pulls get a turn. If Pulls follow each other without a
// pause, shorter turns would restore the rows too late to be useful.
const turn = 20 * time.Millisecond

// Clean loads the clean rows of the snapshot into the cache, the most used first, in turns with
// Pulls. It stops when the cache has no room beyond what the background writer keeps free. It
// returns the number of rows loaded.
//
// The file has each row as it was when the snapshot was fixed. Clean restores such a row only if it
// is neither in the cache nor among others, which are outside of buckets, and if its slot's bucket
// lies in a file that existed when the table was opened. Then the row is unchanged: to be changed,
// it had to be in the cache, which it could leave only into a bucket in a newer file, because files
// of an earlier run are not appended to. Restoring a block holds Changing, so it finds the row in
// one of the two places. Clean also skips rows whose slot was split, compacted or written for other
// rows. Slots must not be merged meanwhile.
func (r *Restorer) Clean(ctx context.Context, s catalog.Snapshot, others *outside.Index) (rows int64, err error) {
	var since time.Time // start of the turn; zero between turns
	err = r.Checkpoints.EachClean(ctx, s, func(block *deltafile.Reader, n int) (more bool, err error) {
		if since.IsZero() {
			if err := r.Changing.Acquire(ctx); err != nil {
				return false, err
			}
			since = time.Now()
		}
		got, full, err := r.cleanBlock(block, n, checkpoint.Newest(s.Deltas).Instant(), others)
		rows += int64(got)
		if time.Since(since) > turn {
			since = time.Time{}
			r.Changing.Release()
		}
		return !full, err
	})
	if !since.IsZero() {
		r.Changing.Release()
	}
	return rows, err
}

// cleanBlock puts the rows of a block that are still the latest versions into the cache, and
// reports whether the cache is full. REQUIRES: Changing is held.
func (r *Restorer) cleanBlock(block *deltafile.Reader, n int, d *catalog.Delta, others *outside.Index) (rows int, full bool, err error) {
	if !r.Table.HasRoom(n) {
		return 0, true, nil
	}
	r.take(block, 0, n)
	r.IndexMu.RLock()
	r.keep(func(hash uint64, loc bucketfile.Location) bool {
		return loc != 0 && r.Checkpoints.WrittenBefore(d, loc) && !others.HasHash(hash)
	})
	r.IndexMu.RUnlock()
	return r.clean()
}
