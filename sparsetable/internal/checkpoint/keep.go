package checkpoint

import (
	"fmt"
	"io"
	"sync"

	"aibox/sparsetable/internal/catalog"
)

// Kept is a snapshot whose files stay as they are until Release, even if it is dropped. A
// bucket file may still grow: only its first bytes belong to the snapshot.
type Kept struct {
	store   *Store
	pin     *catalog.Pin
	release func() // of the bucket files
	once    sync.Once
}

// Keep keeps a snapshot. It fails with catalog.ErrNoSnapshot if there is none.
func (c *Store) Keep(id uint64) (*Kept, error) {
	pin, err := c.Catalog.Pin(id)
	if err != nil {
		return nil, err
	}
	s := pin.Snapshot()
	release, ok := c.files.Keep(s.ID)
	if !ok || !c.keepDeltas(s.Deltas) {
		if ok {
			release()
		}
		pin.Release()
		return nil, fmt.Errorf("%w: %d is being dropped", catalog.ErrNoSnapshot, s.ID)
	}
	return &Kept{store: c, pin: pin, release: release}, nil
}

// keepDeltas keeps delta files, if none of them is deleted already.
func (c *Store) keepDeltas(list []catalog.Delta) bool {
	f := &c.lists
	f.Lock()
	defer f.Unlock()
	for _, d := range list {
		if _, known := f.files[d.Name]; !known {
			return false
		}
	}
	for _, d := range list {
		f.kept[d.Name]++
	}
	return true
}

// Snapshot is the snapshot without the clean rows in its delta files: a table that is made
// of it elsewhere reads them from their buckets.
func (k *Kept) Snapshot() catalog.Snapshot {
	s := Upgraded(k.pin.Snapshot())
	s.Deltas = WithDirtyRows(s.Deltas)
	for i := range s.Deltas {
		s.Deltas[i].Bytes, s.Deltas[i].Rows = s.Deltas[i].DirtyBytes, s.Deltas[i].DirtyRows
	}
	return s
}

// WriteIndex writes the index, or what of it changed after snapshot since, as catalog.Stream
// reads it. The table is not closed meanwhile.
func (k *Kept) WriteIndex(w io.Writer, since uint64) error {
	return k.pin.Write(w, k.Snapshot(), since)
}

// Release lets the files be deleted. It may be called after the table was closed.
func (k *Kept) Release() (err error) {
	k.once.Do(func() {
		deltas := k.pin.Snapshot().Deltas
		k.pin.Release()
		k.release()
		f := &k.store.lists
		f.Lock()
		for _, d := range deltas {
			f.kept[d.Name]--
		}
		f.Unlock()
		err = k.store.deleteUnused(deltas)
	})
	return err
}
