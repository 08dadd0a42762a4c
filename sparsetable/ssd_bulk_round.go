package sparsetable

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"aibox/sparsetable/internal/distinct"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/spool"
)

// bulkLoad imports rows through spools, in rounds of one spool each. Where the
// directories have room for all the rows, there is only one round.
type bulkLoad struct {
	t   *ssd
	ctx context.Context

	arena    []byte // borrowed
	borrowed int64
	spool    *spool.Spool
	limit    int64 // bytes that the spool may take, by the space that there was
	look     int64 // bytes of the spool at which the free space is checked again
	distinct distinct.Keys
	spools   uint64 // made by this import
	id       uint64

	applied int64 // rows in buckets, including those that later rows of the same keys replaced
	merge   bulkMerge
	ahead   *aheadReader // while a spool is merged
}

// newBulkLoad returns nil if memory or disk space do not suffice for it.
func (t *ssd) newBulkLoad(ctx context.Context) (*bulkLoad, error) {
	var id [8]byte
	if _, err := crand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("sparsetable: choose a name for a spool: %w", err)
	}
	l := &bulkLoad{t: t, ctx: ctx, id: binary.LittleEndian.Uint64(id[:])}
	ok, err := l.begin()
	if err != nil || !ok {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// add puts a row into the spool.
func (l *bulkLoad) add(key uint64, row []float32) error {
	h := l.t.hash.Of(key)
	l.distinct.Add(key, h)
	return l.spool.Add(l.ctx, key, h, row)
}

// begin starts a round. It reports whether there is room for it.
func (l *bulkLoad) begin() (bool, error) {
	t := l.t
	l.distinct, l.look = distinct.Keys{Hash: t.hash}, 0
	if ok, err := l.takeArena(spool.LeastArena(len(t.dirs.Devices), t.bulk.minBlock), 0); !ok || err != nil {
		return false, err
	}
	var err error
	if l.limit, err = l.spaceForSpool(0); err != nil {
		return false, err
	}
	if l.limit < int64(len(l.arena)) { // not worth it
		return false, nil
	}
	var ok bool
	l.spool, ok = t.spools().New(l.arena, t.bulk.minBlock, spool.Place{ID: l.nextID(), Free: t.spreadBits(), Shift: t.spreadBits(), Groups: spool.Groups})
	return ok, nil
}

func (l *bulkLoad) nextID() uint64 {
	l.spools++
	return l.id + l.spools
}

// spools is where the spools of imports lie.
func (t *ssd) spools() *spool.Store {
	return &spool.Store{
		Devices: t.dirs.Devices, Table: t.tableID, RowBytes: t.layout.Bytes(), Hash: t.hash,
		Charge: t.files.Charge, Written: func(bytes int64) { t.spooled.Add(bytes) },
	}
}

// spreadBits is how many low bits of a slot's number must vary within a
// partition for its buckets to go to all directories.
func (t *ssd) spreadBits() uint { return uint(bits.TrailingZeros(uint(len(t.dirs.Devices)))) }

// takeArena borrows memory, as much as is planned if the cache can spare it, and
// maps most of it as the arena. The rest is for the lists of blocks and for that
// many aheadReaders.
func (l *bulkLoad) takeArena(least int64, readers int64) (bool, error) {
	t := l.t
	bytes, err := t.borrowUpTo(l.ctx, t.bulk.arenaBytes, least)
	if err != nil || bytes == 0 {
		return false, err
	}
	l.borrowed = bytes
	l.arena, err = offheap.Map(int((bytes - bytes/bulkListShare - readers*aheadBytes(bytes)) / 4096 * 4096))
	return err == nil, err
}

func (l *bulkLoad) dropArena() error {
	var err error
	if l.arena != nil {
		err = offheap.Unmap(l.arena)
		l.arena = nil
	}
	if l.borrowed > 0 {
		l.t.giveBack(l.borrowed)
		l.borrowed = 0
	}
	return err
}

// apply ends the round: it merges the rows of the spool into buckets.
func (l *bulkLoad) apply() error {
	s := l.spool
	if s == nil {
		return nil
	}
	l.spool = nil
	err := s.Finish(l.ctx)
	if err == nil {
		err = l.dropArena() // the index needs room
	}
	if err == nil {
		err = l.grow()
	}
	if err == nil {
		err = l.mergeSpool(s)
	}
	return errors.Join(err, s.Close(), l.dropArena())
}

// mergeSpool merges what is in the spool with the table. While it does, no slot
// is split.
func (l *bulkLoad) mergeSpool(s *spool.Spool) error {
	t := l.t
	ok, err := l.takeArena(4*int64(s.BlockBytes()), 1)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the cache cannot spare memory for even a part of the imported rows", ErrBudget)
	}
	if err != nil {
		return err
	}
	l.ahead = t.newAheadReader(aheadBytes(l.borrowed))
	defer func() { l.ahead.close(); l.ahead = nil }()
	t.rewrite.Lock()
	end := t.rewrite.scan()
	t.rewrite.Unlock()
	defer end()
	return l.mergeParts(s)
}

// mergeParts merges the units of a spool. A unit that is larger than the arena is
// spooled again, in smaller partitions. Where that cannot be done, it is merged
// piece by piece, and each slot's bucket is written once for every piece.
func (l *bulkLoad) mergeParts(s *spool.Spool) error {
	t := l.t
	level := uint(bits.Len32(t.index.Slots())) - 1
	units := s.Units(level)
	plan, err := s.Plan(units, len(l.arena), t.index.Slots())
	divisible := s.Divisible(level) && l.dividesIn(s)
	if err != nil && !divisible {
		return fmt.Errorf("%w: %w", ErrBudget, err)
	}
	for len(units) > 0 {
		n := 0
		for n < len(units) && (!divisible || plan.Fits(&units[n])) && err == nil {
			n++
		}
		if n > 0 {
			if err := l.mergeUnits(s, units[:n], plan); err != nil {
				return err
			}
		} else {
			n = 1
			if err := l.respool(s, &units[0]); err != nil {
				return err
			}
		}
		units = units[n:]
	}
	return nil
}

// dividesIn reports whether a part of s can be spooled again.
func (l *bulkLoad) dividesIn(s *spool.Spool) bool {
	arena := int64(len(l.arena)) - plan.RoundUp(int64(s.BlockBytes()), 4096)
	_, ok := spool.ShapeOf(arena, l.t.entryBytes(), len(l.t.dirs.Devices), l.t.bulk.minBlock)
	return ok
}

// respool divides a unit into a spool of its own and merges that.
func (l *bulkLoad) respool(s *spool.Spool, u *spool.Unit) (err error) {
	block := s.BlockBytes()
	sub, ok := l.t.spools().New(l.arena[plan.RoundUp(int64(block), 4096):], l.t.bulk.minBlock, s.Part(l.nextID(), u))
	if !ok {
		panic("sparsetable: part of a spool cannot be divided, although dividesIn said so")
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	if err := s.Copy(l.ctx, u, sub, l.arena[:block]); err != nil {
		return err
	}
	if err := sub.Finish(l.ctx); err != nil {
		return err
	}
	if err := s.Done(u); err != nil {
		return err
	}
	return l.mergeParts(sub)
}

// close gives back the spool and the memory.
func (l *bulkLoad) close() error {
	var err error
	if l.spool != nil {
		err = l.spool.Close()
		l.spool = nil
	}
	return errors.Join(err, l.dropArena())
}
