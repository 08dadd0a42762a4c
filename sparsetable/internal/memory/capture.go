package memory

import (
	"errors"

	"aibox/sparsetable/internal/offheap"
)

// The marks of rows while a snapshot is being written.
const (
	markOpen    = 0 // not pinned, and yet to be written from its slab
	markSettled = 1 // written, or not part of the snapshot
	markSaved   = 2 // copied: markSaved plus the number of its copy in capture.saved
)

// saveChunkBytes is the unit in which memory for copies is allocated.
const saveChunkBytes = 256 << 10

// capture is the state of the table at the time of a Snapshot: each row as it is in its slab,
// unless its mark says otherwise. The table's mutex guards it.
type capture struct {
	end      uint64   // references from here on are not part of the snapshot
	saved    [][]byte // chunks of copies
	copies   uint32   // in saved
	perChunk uint32   // copies in a chunk
	inline   bool     // Snapshot writes it before it returns, so no row is updated and none is copied
	finished bool     // it was written; marks are no longer needed
}

func newCapture(s *slabs) *capture {
	return &capture{end: s.next, perChunk: uint32(max(1, saveChunkBytes/s.layout.Bytes()))}
}

func (c *capture) savedBytes() int64 {
	if len(c.saved) == 0 {
		return 0
	}
	return int64(len(c.saved)) * int64(len(c.saved[0]))
}

// copied returns the copy that mark names.
func (c *capture) copied(mark uint32, words int) []float32 {
	i := mark - markSaved
	off := 4 * words * int(i%c.perChunk)
	return offheap.Float32s(c.saved[i/c.perChunk][off : off+4*words])
}

// secure copies those of refs that the snapshot still needs, so that the rows may be updated. It
// returns errNoRoom if the budget has no room for a copy, or the process cannot have the memory.
func (c *capture) secure(t *Table, refs []uint32) error {
	if c.inline || c.finished {
		return nil
	}
	for _, ref := range refs {
		if ref == 0 {
			continue
		}
		if err := c.secureRow(t, ref); err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) secureRow(t *Table, ref uint32) error {
	s := t.mu.slabs
	mark := s.mark(ref)
	if *mark != markOpen {
		return nil
	}
	if !s.trained(ref) {
		*mark = markSettled
		return nil
	}
	if c.copies == uint32(len(c.saved))*c.perChunk {
		size := int(c.perChunk) * t.layout.Bytes()
		if t.budget > 0 && t.presentLocked()+int64(size) > t.budget {
			return errNoRoom
		}
		if t.mu.room.take(int64(size), "copying rows") != nil {
			return errNoRoom
		}
		b, err := offheap.Map(size)
		if err != nil {
			return err
		}
		c.saved = append(c.saved, b)
	}
	*mark = markSaved + c.copies
	c.copies++
	copy(c.copied(*mark, s.words), s.row(ref))
	return nil
}

// pass marks a row that was created after the snapshot was fixed and so is not part of it.
func (c *capture) pass(t *Table, ref uint32) {
	if !c.finished {
		*t.mu.slabs.mark(ref) = markSettled
	}
}

// securePinned secures all pinned rows. If there is no room for the copies, it sets inline, so that
// the snapshot is written before Snapshot returns.
func (c *capture) securePinned(t *Table) error {
	for _, ws := range t.mu.live {
		err := c.secure(t, ws.refs)
		if errors.Is(err, errNoRoom) {
			c.inline = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close removes the capture and its marks from t.
func (c *capture) close(t *Table) error {
	t.mu.Lock()
	c.finished = true
	n := len(t.mu.slabs.marks)
	t.mu.Unlock()
	for i := range n {
		t.mu.Lock()
		clear(t.mu.slabs.marks[i])
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.snap = nil
	var errs []error
	for _, b := range c.saved {
		errs = append(errs, offheap.Unmap(b))
	}
	return errors.Join(errs...)
}
