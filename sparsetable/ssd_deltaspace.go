package sparsetable

import (
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// deltaBytes is what a delta file takes, or one of its parts, with that many rows:
// blocks, of which the last is as long as it must.
func (t *ssd) deltaBytes(rows int64) int64 {
	block, entry := int64(deltaBlockBytes(t.layout)), int64(deltaEntryBytes+t.layout.Bytes())
	perBlock := (block - deltaHeaderBytes) / entry
	bytes := rows / perBlock * block
	if rest := rows % perBlock; rest > 0 {
		bytes += roundUp(deltaHeaderBytes+rest*entry, int64(t.pool.Unit()))
	}
	return bytes
}

// claim makes sure of the space of the rows that the snapshot must have: those that
// are dirty and those that are pinned to be trained. It runs at the instant at
// which these are fixed, so that there are no others. REQUIRES: rewrite and mu are
// held.
func (s *ssdSnapshot) claim() error {
	t := s.t
	st := t.cache.Stats()
	err := s.claimRows(st.Dirty + st.InFlight)
	if errors.Is(err, bucketfile.ErrNoSpace) {
		return s.claimRows(st.Dirty + s.pinnedClean()) // most pinned rows may be dirty, too
	}
	return err
}

func (s *ssdSnapshot) claimRows(rows int64) error {
	return s.t.files.Claim(0, s.t.deltaBytes(rows), s.free)
}

// pinnedClean is how many pinned rows the snapshot must have that are not dirty.
// REQUIRES: mu is held.
func (s *ssdSnapshot) pinnedClean() (rows int64) {
	t := s.t
	for _, ws := range t.mu.live {
		if ws.mode != PullCreate {
			continue
		}
		t.cache.Visit(ws.refs, func(_ int, e rowcache.Entry) rowcache.Change {
			if e.Flags&rowcache.Dirty == 0 && t.trained(e.Row) {
				rows++
			}
			return rowcache.Change{}
		})
	}
	return rows
}
