package bulk

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/distinct"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/spool"
)

// load imports rows through spools, in rounds of one spool each. If the directories have room for
// all the rows, there is only one round.
type load struct {
	*Options
	ctx context.Context

	arena    []byte // borrowed
	borrowed int64
	spool    *spool.Spool
	limit    int64 // bytes that the spool may take, according to the free space
	look     int64 // size of the spool at which the free space is checked again
	distinct distinct.Keys
	spools   uint64 // number of spools made by this import
	id       uint64

	applied int64  // rows in buckets, including those that later rows of the same keys replaced
	merger  Merger // while a spool is merged
}

// newLoad returns nil if memory or disk space do not suffice.
func newLoad(ctx context.Context, o *Options) (*load, error) {
	var id [8]byte
	if _, err := crand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("sparsetable: choose a name for a spool: %w", err)
	}
	l := &load{Options: o, ctx: ctx, id: binary.LittleEndian.Uint64(id[:])}
	ok, err := l.begin()
	if err != nil || !ok {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// add adds a row to the spool.
func (l *load) add(key uint64, row []float32) error {
	h := l.Hash.Of(key)
	l.distinct.Add(key, h)
	return l.spool.Add(l.ctx, key, h, row)
}

// begin starts a round. It reports whether there is room for it.
func (l *load) begin() (bool, error) {
	l.distinct, l.look = distinct.Keys{Hash: l.Hash}, 0
	if ok, err := l.takeArena(spool.LeastArena(l.dirs(), l.Plan.MinBlock), 0); !ok || err != nil {
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
	l.spool, ok = l.Spools.New(l.arena, l.Plan.MinBlock, spool.Place{ID: l.nextID(), Free: l.spreadBits(), Shift: l.spreadBits(), Groups: spool.Groups})
	return ok, nil
}

func (l *load) nextID() uint64 {
	l.spools++
	return l.id + l.spools
}

// spreadBits is how many low bits of a slot's number must vary within a partition, so that its
// buckets go to all directories.
func (l *load) spreadBits() uint { return uint(bits.TrailingZeros(uint(l.dirs()))) }

// takeArena borrows memory, as much as planned if the cache can spare it, and maps most of it as
// the arena. The rest is for the lists of blocks and for that many mergers.
func (l *load) takeArena(least int64, mergers int64) (bool, error) {
	bytes, err := l.Table.Borrow(l.ctx, l.Plan.ArenaBytes, least)
	if err != nil || bytes == 0 {
		return false, err
	}
	l.borrowed = bytes
	l.arena, err = offheap.Map(int((bytes - bytes/listShare - mergers*mergerBytes(bytes)) / 4096 * 4096))
	return err == nil, err
}

// mergerBytes is the part of the borrowed memory for a merger.
func mergerBytes(borrowed int64) int64 {
	return max(min(borrowed/mergerShare, maxMergerBytes)/4096, 1) * 4096
}

// 1/mergerShare of the borrowed memory, up to maxMergerBytes, is for the buckets that a merger
// reads.
const (
	mergerShare    = 16
	maxMergerBytes = 4 << 20
)

func (l *load) dropArena() error {
	var err error
	if l.arena != nil {
		err = offheap.Unmap(l.arena)
		l.arena = nil
	}
	if l.borrowed > 0 {
		l.Table.GiveBack(l.borrowed)
		l.borrowed = 0
	}
	return err
}

// apply ends the round by merging the rows of the spool into buckets.
func (l *load) apply() error {
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
		err = l.Table.Grow(l.ctx, &l.distinct)
	}
	if err == nil {
		err = l.mergeSpool(s)
	}
	return errors.Join(err, s.Close(), l.dropArena())
}

// mergeSpool merges the rows of the spool with the table. No slot is split meanwhile.
func (l *load) mergeSpool(s *spool.Spool) error {
	ok, err := l.takeArena(4*int64(s.BlockBytes()), 1)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the cache cannot spare memory for even a part of the imported rows", contract.ErrBudget)
	}
	if err != nil {
		return err
	}
	l.merger = l.Table.NewMerger(mergerBytes(l.borrowed))
	defer l.merger.Close()
	return l.mergeParts(s)
}

// mergeParts merges the units of a spool. A unit that is larger than the arena is spooled again, in
// smaller partitions. If that is impossible, it is merged piece by piece, and each slot's bucket is
// written once for every piece.
func (l *load) mergeParts(s *spool.Spool) error {
	level := uint(bits.Len32(l.Index.Slots())) - 1
	units := s.Units(level)
	plan, err := s.Plan(units, len(l.arena), l.Index.Slots())
	divisible := s.Divisible(level) && l.dividesIn(s)
	if err != nil && !divisible {
		return fmt.Errorf("%w: %w", contract.ErrBudget, err)
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

// mergeUnits merges the units of a spool, in order.
func (l *load) mergeUnits(s *spool.Spool, units []spool.Unit, plan spool.Plan) error {
	loader, table := s.NewLoader(plan, l.arena, l.Index.Slots())
	ctx, stop := context.WithCancel(l.ctx)
	ended := make(chan struct{})
	panics.Go("reading a spool", func() {
		defer close(ended)
		loader.Run(ctx, units)
	})
	// The arena is the loader's until it has ended.
	defer func() { stop(); <-ended }()
	for a := range loader.Loaded() {
		if a.Err != nil {
			return a.Err
		}
		rows, err := l.merger.Merge(ctx, a, table)
		l.applied += rows
		if err != nil {
			return err
		}
		u, ends := a.Unit, a.Ends
		loader.Free(a)
		if ends {
			if err := s.Done(u); err != nil {
				return err
			}
		}
	}
	return l.ctx.Err()
}

// dividesIn reports whether a part of s can be spooled again.
func (l *load) dividesIn(s *spool.Spool) bool {
	arena := int64(len(l.arena)) - plan.RoundUp(int64(s.BlockBytes()), 4096)
	_, ok := spool.ShapeOf(arena, l.Entry, l.dirs(), l.Plan.MinBlock)
	return ok
}

// respool divides a unit into a spool of its own and merges that spool.
func (l *load) respool(s *spool.Spool, u *spool.Unit) (err error) {
	block := s.BlockBytes()
	sub, ok := l.Spools.New(l.arena[plan.RoundUp(int64(block), 4096):], l.Plan.MinBlock, s.Part(l.nextID(), u))
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

// close frees the spool and the memory.
func (l *load) close() error {
	var err error
	if l.spool != nil {
		err = l.spool.Close()
		l.spool = nil
	}
	return errors.Join(err, l.dropArena())
}
