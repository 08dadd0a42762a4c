package spool

import "math/bits"

const (
	// partitions is the number of partitions of a spool. With more partitions each is
	// smaller, so that sorting stays in the processor's caches; with fewer, writes are
	// larger.
	partitions    = 512
	minPartitions = 4
	// Nothing is gained by writes larger than maxBlock.
	maxBlock  = 256 << 10
	tinyBlock = 16 << 10 // where there is little memory
	// spareBlocks is how many blocks may be on their way to the device of each directory.
	spareBlocks = 8
)

// Shape is how a spool divides its memory.
type Shape struct {
	BlockBytes int
	Bits       uint // 2^Bits partitions
	spare      int  // blocks besides one for each partition
}

// ShapeOf divides an arena of that many bytes among the partitions of a spool with entries of
// entry bytes. Writes have minBlock bytes, unless memory is scarce. ok is false where the
// arena is too small to be of use.
func ShapeOf(arena int64, entry, dirs, minBlock int) (s Shape, ok bool) {
	s.spare = spareBlocks * dirs
	least := padUp(headerBytes + entry)
	fit := func(block int) int64 { return arena/int64(block) - int64(s.spare) }
	s.BlockBytes = int(min(max(arena/int64(partitions+s.spare)/padTo*padTo, int64(minBlock)), maxBlock))
	if fit(max(s.BlockBytes, least)) < partitions/16 {
		s.BlockBytes = min(s.BlockBytes, tinyBlock, minBlock)
	}
	s.BlockBytes = max(s.BlockBytes, least)
	n := min(fit(s.BlockBytes), partitions)
	if n < minPartitions {
		return s, false
	}
	s.Bits = uint(bits.Len64(uint64(n))) - 1
	return s, true
}

// LeastArena is the smallest arena that is of use where rows are small.
func LeastArena(dirs, minBlock int) int64 {
	return int64((minPartitions + spareBlocks*dirs) * min(tinyBlock, minBlock))
}
