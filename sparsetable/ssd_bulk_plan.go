package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"

	"aibox/sparsetable/internal/offheap"
)

// bulkPlan says how a large import uses memory.
type bulkPlan struct {
	smallRows  int64 // imports of up to so many rows go through the cache
	arenaBytes int64 // the most memory for the spool's buffers, and later for partitions
	minBlock   int   // bytes of a write to the spool, unless memory is scarce
}

const (
	// A small import may take this part of the cache, whatever is in it.
	bulkSmallShare = 16
	// bulkMaxArena is enough for bulkPartitions times bulkMaxBlock.
	bulkMaxArena = 160 << 20
	// For writes smaller than bulkMinBlock their number matters more than their
	// bytes; nothing is gained by writes larger than bulkMaxBlock.
	bulkMinBlock  = 64 << 10
	bulkMaxBlock  = 256 << 10
	bulkTinyBlock = 16 << 10 // where there is little memory
	// bulkPartitions is the number of partitions of a spool. With more partitions
	// each is smaller, so that sorting stays in the processor's caches; with fewer,
	// writes are larger.
	bulkPartitions    = 512
	bulkMinPartitions = 4
	// bulkSpareBlocks is how many blocks may be on their way to the device of each
	// directory.
	bulkSpareBlocks = 8
	// The lists of blocks may take one part in bulkListShare of the borrowed
	// memory; the arena is the rest.
	bulkListShare = 16
)

func planBulk(p *ssdPlan, fitRows int64) bulkPlan {
	return bulkPlan{
		smallRows:  max(importBatch, fitRows/bulkSmallShare),
		arenaBytes: min(p.cacheBytes/2, bulkMaxArena),
		minBlock:   bulkMinBlock,
	}
}

// spoolShape is how a spool divides its memory.
type spoolShape struct {
	blockBytes int
	bits       uint // 2^bits partitions
	spare      int  // blocks besides one for each partition
}

// shape divides an arena among the partitions of a spool; ok is false where it
// is too small to be of use.
func (p *bulkPlan) shape(arena int64, entry, dirs int) (s spoolShape, ok bool) {
	s.spare = bulkSpareBlocks * dirs
	least := int(roundUp(spoolHeaderBytes+int64(entry), 4096))
	partitions := func(block int) int64 { return arena/int64(block) - int64(s.spare) }
	s.blockBytes = int(min(max(arena/int64(bulkPartitions+s.spare)/4096*4096, int64(p.minBlock)), bulkMaxBlock))
	if partitions(max(s.blockBytes, least)) < bulkPartitions/16 {
		s.blockBytes = min(s.blockBytes, bulkTinyBlock, p.minBlock)
	}
	s.blockBytes = max(s.blockBytes, least)
	n := min(partitions(s.blockBytes), bulkPartitions)
	if n < bulkMinPartitions {
		return s, false
	}
	s.bits = uint(bits.Len64(uint64(n))) - 1
	return s, true
}

// bulkEntryBytes is what a row takes with its key.
func bulkEntryBytes(l Layout) int { return 8 + l.Bytes() }

// putEntry writes a row with its key to the beginning of b.
func putEntry(b []byte, key uint64, row []float32) {
	binary.LittleEndian.PutUint64(b, key)
	copy(offheap.Float32s(b[8:]), row)
}

func entryKey(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func entryRow(b []byte, entry int) []float32 { return offheap.Float32s(b[8:entry:entry]) }

// eachEntry calls fn for the rows that lie in b.
func eachEntry(b []byte, entry int, fn func(key uint64, row []float32) error) error {
	for ; len(b) >= entry; b = b[entry:] {
		if err := fn(entryKey(b), entryRow(b, entry)); err != nil {
			return err
		}
	}
	return nil
}

// borrowSteps is the number of steps in which borrow takes its memory. Dirty rows
// leave the cache for it, so after each step the space on disk is checked.
const borrowSteps = 16

// borrow takes bytes of memory from the cache, until giveBack. Errors: errNoVictims
// where the cache cannot give as many.
func (t *ssd) borrow(ctx context.Context, bytes int64) error {
	for i := range int64(borrowSteps) {
		if err := t.reserveNow(ctx, bytes*(i+1)/borrowSteps); err != nil {
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
	t.borrowed.Add(bytes)
	return nil
}

// giveBack ends borrow.
func (t *ssd) giveBack(bytes int64) {
	t.borrowed.Add(-bytes)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	// The cache may grow again. It does not have to shrink for that, so there is no
	// error. If it has to shrink for another reason and cannot, the next call that
	// needs room returns the error.
	_ = t.reserve(0)
}

// borrowUpTo borrows bytes, or half of them, or a quarter and so on, but not less
// than least. It returns how many it borrowed, or 0 where the cache cannot give
// even that.
func (t *ssd) borrowUpTo(ctx context.Context, bytes, least int64) (int64, error) {
	for ; bytes >= least; bytes /= 2 {
		err := t.borrow(ctx, bytes)
		if err == nil {
			return bytes, nil
		}
		if !errors.Is(err, errNoVictims) {
			return 0, err
		}
	}
	return 0, nil
}
