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

// turn is how long rows are restored before Pulls get a turn. With shorter
// turns, where Pulls follow each other without a pause, the rows would be restored
// too late to be of use.
const turn = 20 * time.Millisecond

// Clean brings the clean rows of the snapshot back into the cache, those
// used most first, in turns with Pulls. It stops where the cache has
// no room beyond what the background writer keeps free. It returns how many it brought.
//
// The file has a row as it was when the snapshot was fixed. Such a row is restored
// only if it is not in the cache, not among others, which are outside of buckets, and if its
// slot's bucket lies in a file that was there when the table was opened. Then the row is
// still the same: to be changed, it had to be in the cache, from where it could leave only
// into a bucket in a file that was made since, as files of an earlier run are not appended
// to. The restore of a block holds Changing, so it finds the row in one of the two places.
// Rows are also skipped whose slot was split, compacted or written for other rows. Slots must
// not be merged meanwhile.
func (r *Restorer) Clean(ctx context.Context, s catalog.Snapshot, others *outside.Index) (rows int64, err error) {
	var since time.Time // when the turn began; zero between turns
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

// cleanBlock puts the rows of a block that are still the latest versions
// into the cache, and reports whether the cache is full. REQUIRES: Changing is
// held.
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
