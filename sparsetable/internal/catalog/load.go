package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Load calls fn for every page of the index of a snapshot, in ascending order; ID 0 stands for the
// newest snapshot. data is only valid during the call. From then on the open table and the next
// Commit are based on that snapshot. If fn returns an error, Load stops and returns that error
// unchanged.
//
// Load fails with ErrNoSnapshot, or with a *CorruptionError if a page is missing or damaged.
func (c *Catalog) Load(id uint64, fn func(page uint32, data []byte) error) (Snapshot, error) {
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return Snapshot{}, err
	}
	if c.mu.commit != nil {
		panic("catalog: Load while a commit is under way")
	}
	s, err := c.findLocked(id)
	if err != nil {
		return Snapshot{}, err
	}
	var garbage []pageVersion
	var fromCaller error
	err = c.log.do(func() (err error) {
		garbage, err = c.sweep(s, func(page uint32, data []byte) error {
			fromCaller = fn(page, data)
			return fromCaller
		})
		return err
	})
	if fromCaller != nil {
		return Snapshot{}, fromCaller
	}
	if err != nil {
		return Snapshot{}, c.wrap(err, fmt.Sprintf("load snapshot %d", s.ID))
	}
	old := c.mu.live
	c.mu.live = s
	c.mu.garbage = garbage // all garbage, so it replaces what was known before
	if old != nil {
		c.discardLocked(old) // the sweep still counted its pages as used
	}
	return s.Snapshot, nil
}

// pageOf decodes the key of a page.
func (c *Catalog) pageOf(key []byte) (pageVersion, error) {
	if len(key) != 1+4+8 {
		return pageVersion{}, c.corrupt("a page's key", "%x", key)
	}
	return pageVersion{binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint64(key[5:])}, nil
}

// sweep reads all versions of all pages. It passes those of s, which may be nil, to fn and returns
// those that are not used.
func (c *Catalog) sweep(s *kept, fn func(page uint32, data []byte) error) (garbage []pageVersion, err error) {
	it, err := c.mu.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: []byte{'p' + 1}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	next := uint32(0)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := c.pageOf(it.Key())
		if err != nil {
			return nil, err
		}
		if s == nil || !s.uses(v) {
			if !c.usedLocked(v) {
				garbage = append(garbage, v)
			}
			continue
		}
		if v.page != next {
			break // a page is missing
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if err := fn(v.page, data); err != nil {
			return nil, err
		}
		next++
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	if s != nil && int(next) != len(s.versions) {
		return nil, c.corrupt(fmt.Sprintf("the index of snapshot %d", s.ID), "page %d, written by snapshot %d, is missing", next, s.versions[next])
	}
	return garbage, nil
}
