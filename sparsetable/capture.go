package sparsetable

import (
	"errors"

	"aibox/sparsetable/internal/offheap"
)

// The mark of a row, while a snapshot is being written.
const (
	markOpen    = 0 // to be written as it lies in its slab; it is not pinned
	markSettled = 1 // written, or not part of the snapshot
	markSaved   = 2 // plus the number of its copy in capture.saved
)

// saveChunkBytes is the unit in which room for copies is taken.
const saveChunkBytes = 256 << 10

// capture is the state of the table at the time of a Snapshot: rows as they
// lie, but for those whose mark says otherwise. The table's mutex guards it.
type capture struct {
	end      uint64   // references from here on are not part of it
	saved    [][]byte // chunks of copies
	copies   uint32   // in saved
	perChunk uint32   // copies in a chunk
	inline   bool     // nobody updates rows until it is written: copy nothing
	finished bool     // written: nothing needs a mark any more
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

// secure makes the row of ref free to be updated. It returns errNoRoom when
// the budget has no room for a copy.
func (c *capture) secure(t *memory, ref uint32) error {
	s := t.mu.slabs
	mark := s.mark(ref)
	if c.inline || c.finished || *mark != markOpen {
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

// pass marks a row that was created after the snapshot.
func (c *capture) pass(t *memory, ref uint32) {
	if !c.finished {
		*t.mu.slabs.mark(ref) = markSettled
	}
}

// securePinned secures all pinned rows. Without room for the copies it leaves
// the rest to an inline snapshot.
func (c *capture) securePinned(t *memory) error {
	for _, ws := range t.mu.live {
		for _, ref := range ws.refs {
			if ref == 0 {
				continue
			}
			err := c.secure(t, ref)
			if errors.Is(err, errNoRoom) {
				c.inline = true
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// close removes what the capture left in t.
func (c *capture) close(t *memory) error {
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
