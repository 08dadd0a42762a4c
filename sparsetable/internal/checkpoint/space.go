package checkpoint

import (
	"errors"
	"iter"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// claim reserves disk space for the rows that the snapshot must write: those that
// are dirty and in no inherited file, and those that are pinned to be trained. It runs while
// the state is being fixed, so no others are added. REQUIRES: no bucket is written, and no
// row is pinned or released.
func (s *Snapshot) claim(st rowcache.Stats, updatable iter.Seq[[]uint32]) error {
	rows := st.Dirty - s.dump.saved
	err := s.claimRows(rows + st.InFlight)
	if errors.Is(err, bucketfile.ErrNoSpace) {
		return s.claimRows(rows + s.pinnedOthers(updatable)) // this counts pinned rows that are dirty only once
	}
	return err
}

func (s *Snapshot) claimRows(rows int64) error {
	bytes := s.c.Deltas.FileBytes(rows)
	if err := s.c.files.Claim(0, bytes, s.free); err != nil {
		return err
	}
	s.dump.claimed = bytes
	return nil
}

// claimClean reserves disk space for clean rows behind the dirty ones, and reports
// whether there is room.
func (d *Dump) claimClean(rows int64) bool {
	free, err := d.c.Deltas.Device.Free()
	if err != nil {
		return false
	}
	// The last block of dirty rows is written in its full length then.
	bytes := int64(d.c.Deltas.BlockBytes()) + d.c.Deltas.FileBytes(rows)
	if d.c.files.Claim(0, bytes, free) != nil {
		return false
	}
	d.claimed += bytes
	return true
}

// settle changes the charge to the given size, which is what the file takes.
func (d *Dump) settle(bytes int64) {
	d.c.files.Charge(0, bytes-d.claimed)
	d.claimed = bytes
}

// settleFixed lowers the charge to that of the rows that were saved so far or are
// yet to be saved. A row that is saved meanwhile may count twice.
func (d *Dump) settleFixed() {
	rows := d.c.Cache.Owed()
	d.mu.Lock()
	rows += d.counts.dirtyRows - d.saved
	d.mu.Unlock()
	if bytes := d.c.Deltas.FileBytes(rows); bytes < d.claimed {
		d.settle(bytes)
	}
}

// pinnedOthers is how many pinned rows the snapshot must write that are not dirty or are
// in an inherited file. REQUIRES: no row is pinned or released.
func (s *Snapshot) pinnedOthers(updatable iter.Seq[[]uint32]) (rows int64) {
	c := s.c
	for refs := range updatable {
		c.Cache.Visit(refs, func(_ int, e rowcache.Entry) rowcache.Change {
			if (e.Flags&rowcache.Dirty == 0 || s.dump.inherits && e.Flags&Saved != 0) && c.Trained(e.Row) {
				rows++
			}
			return rowcache.Change{}
		})
	}
	return rows
}
