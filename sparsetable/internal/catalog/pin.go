package catalog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Pin keeps a snapshot readable, even if it is dropped, until Release.
type Pin struct {
	c *Catalog
	s *kept
}

// Pin pins a snapshot; id 0 stands for the newest one.
func (c *Catalog) Pin(id uint64) (*Pin, error) {
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return nil, err
	}
	s, err := c.findLocked(id)
	if err != nil {
		return nil, err
	}
	c.mu.pinned = append(c.mu.pinned, s)
	return &Pin{c, s}, nil
}

// Snapshot returns the pinned snapshot.
func (p *Pin) Snapshot() Snapshot { return p.s.Snapshot }

// Release unpins the snapshot. A second call does nothing.
func (p *Pin) Release() {
	c := p.c
	c.mu.Lock()
	defer c.unlock()
	if p.s == nil {
		return
	}
	i := slices.Index(c.mu.pinned, p.s)
	c.mu.pinned = slices.Delete(c.mu.pinned, i, i+1)
	c.discardLocked(p.s)
	p.s = nil
}

// Write writes the snapshot as a stream (stream.go), with record in place of the catalog's own
// record. If since is the ID of an earlier snapshot of the same table, the stream has only the
// pages that changed after that snapshot; if it is 0, the stream has all pages. Write may run while
// other snapshots are committed and dropped. The catalog must not be closed before Write returns.
func (p *Pin) Write(to io.Writer, record Snapshot, since uint64) error {
	pages, err := p.pages()
	if err != nil {
		return err
	}
	w, err := newStreamWriter(to, p.c.format, record, since)
	if err == nil {
		err = p.eachPage(pages, since, w.page)
	}
	if err := errors.Join(err, pages.Close()); err != nil {
		return err
	}
	return w.end()
}

// pages returns an iterator over all present versions of all pages.
func (p *Pin) pages() (*pebble.Iterator, error) {
	c := p.c
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return nil, err
	}
	return c.mu.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: []byte{'p' + 1}})
}

// eachPage calls fn for every page of the snapshot that was written after snapshot since, in
// ascending order.
func (p *Pin) eachPage(it *pebble.Iterator, since uint64, fn func(page uint32, data []byte) error) error {
	next := 0
	for ok := it.First(); ok && next < len(p.s.versions); ok = it.Next() {
		v, err := p.c.pageOf(it.Key())
		if err != nil {
			return err
		}
		if !p.s.uses(v) {
			continue
		}
		if int(v.page) != next {
			break // a page is missing
		}
		next++
		if p.s.versions[v.page] <= since {
			continue
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return p.c.wrap(err, fmt.Sprintf("read page %d of snapshot %d", v.page, p.s.ID))
		}
		if err := fn(v.page, data); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return p.c.wrap(err, fmt.Sprintf("read the index of snapshot %d", p.s.ID))
	}
	if next != len(p.s.versions) {
		return p.c.corrupt(fmt.Sprintf("the index of snapshot %d", p.s.ID), "page %d, written by snapshot %d, is missing", next, p.s.versions[next])
	}
	return nil
}
