package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Commit is a snapshot that is being written. The caller calls PutPage for every changed page, and
// then Commit or Abort. A Commit is used by one goroutine.
type Commit struct {
	c         *Catalog
	id        uint64
	table     *table
	base      *kept         // the snapshot it is based on; nil: none, so all pages must be put
	versions  []uint64      // per page, from the base and from the pages put so far
	garbage   []pageVersion // being deleted, ascending
	next      int           // of garbage
	last      int64         // the page that was put last
	pageBytes int64
	err       error // error of the table, which must then be aborted
}

// Begin begins a snapshot of the open table. It is based on the snapshot that Load loaded or that
// the last Commit committed, so only pages that differ from it have to be put. If there is no such
// snapshot, all pages must be put. Only one Commit may be in progress.
func (c *Catalog) Begin() (*Commit, error) { return c.BeginAs(0) }

// BeginAs is Begin for a snapshot that had this ID in another catalog; the ID must be higher than
// all IDs assigned so far. 0 stands for the next ID.
func (c *Catalog) BeginAs(id uint64) (*Commit, error) {
	c.mu.Lock()
	defer c.unlock()
	if err := c.writableLocked(); err != nil {
		return nil, err
	}
	if c.mu.commit != nil {
		panic("catalog: a commit is under way already")
	}
	if id == 0 {
		id = c.mu.lastID + 1
	}
	if id <= c.mu.lastID {
		return nil, fmt.Errorf("catalog: snapshot %d cannot be made after snapshot %d", id, c.mu.lastID)
	}
	t, err := c.newTable(fmt.Sprintf("snapshot-%d", id))
	if err != nil {
		return nil, c.wrap(err, "begin a snapshot")
	}
	w := &Commit{c: c, id: id, table: t, base: c.mu.live, last: -1, garbage: c.takeGarbageLocked()}
	if w.base != nil {
		w.versions = slices.Clone(w.base.versions)
	}
	c.mu.commit = w
	return w, nil
}

func (c *Catalog) writableLocked() error {
	if err := c.usableLocked(); err != nil {
		return err
	}
	if c.readOnly {
		return ErrReadOnly
	}
	return nil
}

// takeGarbageLocked returns the page versions to be deleted, in ascending order, and clears their
// list.
func (c *Catalog) takeGarbageLocked() []pageVersion {
	g := c.mu.garbage
	c.mu.garbage = nil
	slices.SortFunc(g, func(a, b pageVersion) int {
		if a.page != b.page {
			return int(int64(a.page) - int64(b.page))
		}
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return g
}

// ID is the ID of the new snapshot. IDs ascend and are never reused.
func (w *Commit) ID() uint64 { return w.id }

// PageBytes is the size of the pages put so far.
func (w *Commit) PageBytes() int64 { return w.pageBytes }

// PutPage writes a page of the index. Pages come in ascending order. data is not retained.
func (w *Commit) PutPage(page uint32, data []byte) error {
	if int64(page) <= w.last {
		panic(fmt.Sprintf("catalog: page %d after page %d", page, w.last))
	}
	w.c.mu.Lock()
	defer w.c.unlock()
	if err := w.usableLocked(); err != nil {
		return err
	}
	w.last = int64(page)
	for int64(len(w.versions)) <= int64(page) {
		w.versions = append(w.versions, 0) // 0: not put yet
	}
	w.versions[page] = w.id
	w.pageBytes += int64(len(data))
	w.err = w.deleteUpTo(page)
	if w.err == nil {
		w.err = w.table.set(pageKey(pageVersion{page, w.id}), data)
	}
	if w.err != nil {
		return w.c.wrap(w.err, fmt.Sprintf("write page %d of snapshot %d", page, w.id))
	}
	return nil
}

func (w *Commit) usableLocked() error {
	if w.c.mu.commit != w {
		return ErrClosed
	}
	if err := w.c.usableLocked(); err != nil {
		return err
	}
	return w.c.wrap(w.err, "write a snapshot")
}

// deleteUpTo writes the deletions of garbage up to and including page. All versions of page in
// garbage are older than the one to be written.
func (w *Commit) deleteUpTo(page uint32) error {
	for ; w.next < len(w.garbage) && w.garbage[w.next].page <= page; w.next++ {
		if err := w.table.delete(pageKey(w.garbage[w.next])); err != nil {
			return err
		}
	}
	return nil
}

// Commit makes the snapshot durable and visible; the next snapshot will be based on it. It sets
// s.ID and s.PageBytes. After an error there is no such snapshot, except that with ErrFailed only
// the next Open can tell. The caller must then treat its pages as still dirty, and the Commit has
// ended.
func (w *Commit) Commit(s Snapshot) error {
	c := w.c
	c.mu.Lock()
	defer c.unlock()
	if err := w.usableLocked(); err != nil {
		return errors.Join(err, w.endLocked())
	}
	s.ID, s.PageBytes = w.id, w.pageBytes
	s.Files, s.Deltas = slices.Clone(s.Files), slices.Clone(s.Deltas)
	s.Counters, s.Record = maps.Clone(s.Counters), slices.Clone(s.Record)
	k := &kept{Snapshot: s}
	pages := c.pages(s.Slots)
	if int64(pages) > w.last && pages < len(w.versions) {
		w.versions = slices.Clip(w.versions[:pages]) // the index has shrunk
	}
	if len(w.versions) != pages || slices.Contains(w.versions, 0) {
		return errors.Join(fmt.Errorf("catalog: snapshot %d of %d slots has %d pages, some of which may not have been written, but needs %d", w.id, s.Slots, len(w.versions), pages), w.endLocked())
	}
	k.versions = w.versions
	if err := w.finish(k); err != nil {
		return errors.Join(c.wrap(err, fmt.Sprintf("commit snapshot %d", w.id)), w.endLocked())
	}
	t := w.table
	w.table = nil
	if err := c.log.do(func() error { return t.ingest(c.mu.db) }); err != nil {
		return errors.Join(c.wrap(err, fmt.Sprintf("commit snapshot %d", w.id)), w.endLocked())
	}
	c.mu.commit = nil
	c.mu.lastID = w.id
	c.mu.snapshots = append(c.mu.snapshots, k)
	if err := c.writeHeadLocked(); err != nil {
		// The snapshot is durable nevertheless. The existing HEAD does not contradict it, and the
		// next commit, drop or Open writes a new one.
		c.log.to.Warn("catalog: a snapshot was committed, but the file HEAD could not be written, so damage to the snapshot might go unnoticed", "dir", c.dir, "error", err)
	}
	old := c.mu.live
	c.mu.live = k
	if old != nil {
		c.discardLocked(old) // it may be dropped already
	}
	c.compactLocked()
	return nil
}

// finish writes what follows the pages: the remaining deletions and the record.
func (w *Commit) finish(k *kept) error {
	if err := w.deleteUpTo(1<<32 - 1); err != nil {
		return err
	}
	if err := w.table.set(snapshotKey(w.id), encodeSnapshot(k)); err != nil {
		return err
	}
	return w.table.set([]byte{'z'}, binary.BigEndian.AppendUint64(nil, w.id))
}

// Abort discards the commit. After Commit it does nothing.
func (w *Commit) Abort() error {
	w.c.mu.Lock()
	defer w.c.unlock()
	return w.c.wrap(w.endLocked(), "abort a snapshot")
}

// endLocked discards an unsuccessful Commit.
func (w *Commit) endLocked() error {
	if w.c.mu.commit != w {
		return nil
	}
	w.c.mu.commit = nil
	w.c.mu.garbage = append(w.c.mu.garbage, w.garbage...)
	if w.table == nil {
		return nil
	}
	return w.table.abort()
}

func pageKey(v pageVersion) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte{'p'}, v.page), v.id)
}

func snapshotKey(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'s'}, id) }
