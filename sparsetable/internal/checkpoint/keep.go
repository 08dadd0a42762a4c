package checkpoint

import (
	"fmt"
	"io"
	"sync"

	"aibox/sparsetable/internal/catalog"
)

// Kept is a snapshot whose files are kept until Release, even if it is dropped. A bucket file may
// still grow: only its first bytes belong to the snapshot.
type Kept struct {
	store   *Store
	pin     *catalog.Pin
	release func() // releases the bucket files
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

// keepDeltas keeps delta files unless one of them is already deleted.
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

// Snapshot returns the snapshot without the clean rows in its delta files: a table made from it
// elsewhere reads these rows from their buckets.
func (k *Kept) Snapshot() catalog.Snapshot {
	s := Upgraded(k.pin.Snapshot())
	s.Deltas = WithDirtyRows(s.Deltas)
	for i := range s.Deltas {
		s.Deltas[i].Bytes, s.Deltas[i].Rows = s.Deltas[i].DirtyBytes, s.Deltas[i].DirtyRows
	}
	return s
}

// WriteIndex writes the index, or its changes after snapshot since, in the format of
// catalog.Stream. The table must not be closed meanwhile.
func (k *Kept) WriteIndex(w io.Writer, since uint64) error {
	return k.pin.Write(w, k.Snapshot(), since)
}

// Release ends the keeping of the files. It may be called after the table was closed.
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
