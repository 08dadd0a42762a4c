package ssd

import (
	"sync"

	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/refpool"
)

// pinnedSets holds the working sets that are not yet released, and the counters.
type pinnedSets struct {
	sync.Mutex
	live     []*pinned
	refs     refpool.Pool
	released [][]uint32 // lists of sets that nextToMark has yet to return; counted in refs
	stats    contract.Stats
}

// pinned is a working set that is not yet released.
type pinned struct {
	contract.WorkingSet
	refs  []uint32
	place int // among the live sets
	mode  contract.PullMode
	carry *carry.Buckets // copies of the buckets that were read for it
	// unchanged says that the set is from PullAhead and Begin was not called. Guarded by the mutex
	// of pinnedSets.
	unchanged bool
}

// add adds a set. REQUIRES: the mutex is held.
func (s *pinnedSets) add(ws *pinned) {
	ws.place = len(s.live)
	s.live = append(s.live, ws)
}

// remove removes a set. REQUIRES: the mutex is held.
func (s *pinnedSets) remove(ws *pinned) {
	last := len(s.live) - 1
	moved := s.live[last]
	s.live[ws.place] = moved
	moved.place = ws.place
	s.live[last] = nil
	s.live = s.live[:last]
}

// number returns the number of live sets.
func (s *pinnedSets) number() int {
	s.Lock()
	defer s.Unlock()
	return len(s.live)
}

// give returns a list of references to the pool.
func (s *pinnedSets) give(refs []uint32) {
	s.Lock()
	defer s.Unlock()
	s.refs.Give(refs)
}

// markLater leaves it to the next Pull to mark the rows of a released set, so that the trainer need
// not wait for that.
func (s *pinnedSets) markLater(refs []uint32) {
	s.Lock()
	defer s.Unlock()
	s.released = append(s.released, refs)
}

// nextToMark returns a list that was passed to markLater, or nil if there is none.
func (s *pinnedSets) nextToMark() []uint32 {
	s.Lock()
	defer s.Unlock()
	last := len(s.released) - 1
	if last < 0 {
		return nil
	}
	refs := s.released[last]
	s.released = s.released[:last]
	return refs
}

// forget frees all lists of references.
func (s *pinnedSets) forget() {
	s.Lock()
	defer s.Unlock()
	s.refs, s.released = refpool.Pool{}, nil
}
