package catalog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

// Snapshot is the snapshot that is pinned.
func (p *Pin) Snapshot() Snapshot { return p.s.Snapshot }

// Release ends the pin. A second call does nothing.
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

// Write writes the snapshot with all its pages as a stream (stream.go). It may run while
// other snapshots are committed and dropped. The catalog is closed after it.
func (p *Pin) Write(to io.Writer) error {
	c := p.c
	format, err := c.format.encode()
	if err != nil {
		return err
	}
	pages, err := p.pages()
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 1<<18)
	part := func(length int, data []byte) error {
		_, _ = w.Write(binary.LittleEndian.AppendUint32(nil, uint32(length))) // the next Write or Flush returns its error
		_, err := w.Write(data)
		return err
	}
	_, _ = w.WriteString(streamMagic)
	record := encodeSnapshot(&kept{Snapshot: p.s.Snapshot})
	err = errors.Join(part(len(format), format), part(len(record), record))
	if err == nil {
		err = p.eachPage(pages, func(data []byte) error { return part(len(data)+1, data) })
	}
	if err := errors.Join(err, pages.Close()); err != nil {
		return err
	}
	if err := part(0, nil); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = to.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// pages is an iterator over all versions of all pages, as they are now.
func (p *Pin) pages() (*pebble.Iterator, error) {
	c := p.c
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return nil, err
	}
	return c.mu.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: []byte{'p' + 1}})
}

// eachPage calls fn for every page of the snapshot, in ascending order.
func (p *Pin) eachPage(it *pebble.Iterator, fn func(data []byte) error) error {
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
		data, err := it.ValueAndErr()
		if err != nil {
			return p.c.wrap(err, fmt.Sprintf("read page %d of snapshot %d", v.page, p.s.ID))
		}
		if err := fn(data); err != nil {
			return err
		}
		next++
	}
	if err := it.Error(); err != nil {
		return p.c.wrap(err, fmt.Sprintf("read the index of snapshot %d", p.s.ID))
	}
	if next != len(p.s.versions) {
		return p.c.corrupt(fmt.Sprintf("the index of snapshot %d", p.s.ID), "page %d, written by snapshot %d, is missing", next, p.s.versions[next])
	}
	return nil
}
