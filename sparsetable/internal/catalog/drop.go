package catalog

import (
	"errors"
	"fmt"
	"slices"
)

// Drop deletes a snapshot and the pages that no other snapshot uses. The snapshot on which the open
// table is based may be dropped, too. After an error the snapshot is still there, but if the disk
// has failed for good, the next Open may drop it. Drop fails with ErrNoSnapshot if there is no such
// snapshot.
func (c *Catalog) Drop(id uint64) error {
	c.mu.Lock()
	defer c.unlock()
	if err := c.writableLocked(); err != nil {
		return err
	}
	if id == 0 {
		return fmt.Errorf("%w: 0", ErrNoSnapshot)
	}
	s, err := c.findLocked(id)
	if err != nil {
		return err
	}
	i := slices.Index(c.mu.snapshots, s)
	c.mu.snapshots = slices.Delete(c.mu.snapshots, i, i+1)
	c.discardLocked(s)
	garbage := c.takeGarbageLocked()
	// HEAD is written first: it must never name a snapshot that the database has lost.
	if err = c.writeHeadLocked(); err == nil {
		err = c.log.do(func() error { return c.deleteSnapshot(id, garbage) })
	}
	if err != nil {
		c.mu.snapshots = slices.Insert(c.mu.snapshots, i, s)
		c.mu.garbage = slices.DeleteFunc(garbage, c.usedLocked) // used again
		if c.usableLocked() == nil {
			// HEAD must name the snapshot again, or the next Open would complete the drop.
			err = errors.Join(err, c.writeHeadLocked())
		}
		return c.wrap(err, fmt.Sprintf("drop snapshot %d", id))
	}
	c.compactLocked()
	return nil
}

// discardLocked adds the page versions of s that are no longer used to the garbage.
func (c *Catalog) discardLocked(s *kept) {
	if s == c.mu.live || slices.Contains(c.mu.snapshots, s) || slices.Contains(c.mu.pinned, s) {
		return
	}
	for page, id := range s.versions {
		if v := (pageVersion{uint32(page), id}); !c.usedLocked(v) {
			c.mu.garbage = append(c.mu.garbage, v)
		}
	}
}

// usedLocked reports whether a kept snapshot or the open table uses v.
func (c *Catalog) usedLocked(v pageVersion) bool {
	for _, list := range [][]*kept{c.mu.snapshots, c.mu.pinned} {
		for _, s := range list {
			if s.uses(v) {
				return true
			}
		}
	}
	return c.mu.live != nil && c.mu.live.uses(v)
}

func (s *kept) uses(v pageVersion) bool {
	return int64(v.page) < int64(len(s.versions)) && s.versions[v.page] == v.id
}

// deleteSnapshot writes and ingests the deletions.
func (c *Catalog) deleteSnapshot(id uint64, garbage []pageVersion) error {
	t, err := c.newTable(fmt.Sprintf("drop-%d", id))
	if err != nil {
		return err
	}
	for _, v := range garbage {
		if err := t.delete(pageKey(v)); err != nil {
			return errors.Join(err, t.abort())
		}
	}
	if err := t.delete(snapshotKey(id)); err != nil {
		return errors.Join(err, t.abort())
	}
	return t.ingest(c.mu.db)
}
