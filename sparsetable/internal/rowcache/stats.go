package rowcache

// Stats are counters since New, and present sizes.
type Stats struct {
	Rows     int64 // in use
	InFlight int64 // of those, pinned: the paper's LRU lists
	Idle     int64 // of those, candidates of the policy: the paper's LFU lists
	Taken    int64 // of those, handed out by Victims
	Loose    int64 // of the candidates, clean and needed by no announced pass; 0 if the policy does not look ahead
	Dirty    int64 // with updates that are not on SSD
	Marked2  int64 // with Mark2
	Saved    int64 // with Saved
	FitRows  int64 // rows that fit the mapped slabs
	Bytes    int64 // all memory of the cache
	MaxBytes int64
	Window   int64 // bytes of the tables for announced passes

	HitsInFlight int64 // found among the rows of passes in flight
	HitsIdle     int64 // found among the candidates
	Evictions    int64

	LookaheadPasses int   // how many passes ahead Announce notes at present, beyond the next pass
	Announced       int64 // keys of announced passes
	NotAnnounced    int64 // keys that were not noted because the window has no room
}

// Stats returns the present state.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.Rows, s.Idle, s.Taken, s.Dirty = c.mu.rows, c.mu.ranks.idle.rows, c.mu.taken, c.mu.dirty
	s.HitsInFlight, s.HitsIdle = c.mu.hitsInFlight, c.mu.hitsIdle
	if c.rules.window {
		for _, n := range c.mu.ranks.clean.byUses {
			s.Loose += n
		}
	}
	s.Marked2, s.Saved = c.mu.marked2, c.mu.saved
	s.InFlight = s.Rows - s.Idle - s.Taken
	s.FitRows = int64(c.mapped())<<c.shift - 1
	s.Bytes, s.MaxBytes = c.mu.bytes, c.mu.maxBytes
	s.Window = c.mu.win.bytes()
	s.LookaheadPasses = c.reachLocked()
	return s
}
