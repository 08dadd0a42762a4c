package sparsetable

import (
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// deltaBytes is how many bytes a delta file, or one of its parts, takes with that
// many rows: full blocks, and a last one that is as short as possible.
func (t *ssd) deltaBytes(rows int64) int64 {
	block, entry := int64(deltaBlockBytes(t.layout)), int64(deltaEntryBytes+t.layout.Bytes())
	perBlock := (block - deltaHeaderBytes) / entry
	bytes := rows / perBlock * block
	if rest := rows % perBlock; rest > 0 {
		bytes += roundUp(deltaHeaderBytes+rest*entry, int64(t.pool.Unit()))
	}
	return bytes
}

// claim reserves disk space for the rows that the snapshot must write: those that
// are dirty and in no inherited file, and those that are pinned to be trained. It runs while the state is
// being fixed, so no others are added. REQUIRES: rewrite and mu are held.
func (s *ssdSnapshot) claim(st rowcache.Stats) error {
	rows := st.Dirty - s.delta.saved
	err := s.claimRows(rows + st.InFlight)
	if errors.Is(err, bucketfile.ErrNoSpace) {
		return s.claimRows(rows + s.pinnedOthers()) // this counts pinned rows that are dirty only once
	}
	return err
}

func (s *ssdSnapshot) claimRows(rows int64) error {
	bytes := s.t.deltaBytes(rows)
	if err := s.t.files.Claim(0, bytes, s.free); err != nil {
		return err
	}
	s.delta.claimed = bytes
	return nil
}

// claimClean reserves disk space for clean rows behind the dirty ones, and reports
// whether there is room.
func (d *snapshotDelta) claimClean(rows int64) bool {
	free, err := d.t.devices[0].Free()
	if err != nil {
		return false
	}
	// The last block of dirty rows is written in its full length then.
	bytes := int64(deltaBlockBytes(d.t.layout)) + d.t.deltaBytes(rows)
	if d.t.files.Claim(0, bytes, free) != nil {
		return false
	}
	d.claimed += bytes
	return true
}

// settle changes the charge to the given size, which is what the file takes.
func (d *snapshotDelta) settle(bytes int64) {
	d.t.files.Charge(0, bytes-d.claimed)
	d.claimed = bytes
}

// settleFixed lowers the charge to that of the rows that were saved so far or are
// yet to be saved. A row that is saved meanwhile may count twice.
func (d *snapshotDelta) settleFixed() {
	rows := d.t.cache.Owed()
	d.mu.Lock()
	rows += d.counts.dirtyRows - d.saved
	d.mu.Unlock()
	if bytes := d.t.deltaBytes(rows); bytes < d.claimed {
		d.settle(bytes)
	}
}

// pinnedOthers is how many pinned rows the snapshot must write that are not dirty or are
// in an inherited file. REQUIRES: mu is held.
func (s *ssdSnapshot) pinnedOthers() (rows int64) {
	t := s.t
	for _, ws := range t.mu.live {
		if ws.mode != PullCreate {
			continue
		}
		t.cache.Visit(ws.refs, func(_ int, e rowcache.Entry) rowcache.Change {
			if (e.Flags&rowcache.Dirty == 0 || s.delta.inherits && e.Flags&rowSaved != 0) && t.trained(e.Row) {
				rows++
			}
			return rowcache.Change{}
		})
	}
	return rows
}
