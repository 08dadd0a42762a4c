package spool

import "math/bits"

const (
	// partitions is the number of partitions of a spool. More and smaller partitions keep sorting
	// in the processor's caches; fewer make writes larger.
	partitions    = 512
	minPartitions = 4
	// Writes larger than maxBlock gain nothing.
	maxBlock  = 256 << 10
	tinyBlock = 16 << 10 // used if memory is scarce
	// spareBlocks is the number of blocks per directory that may be on their way to the device.
	spareBlocks = 8
)

// Shape says how a spool divides its memory.
type Shape struct {
	BlockBytes int
	Bits       uint // 2^Bits partitions
	spare      int  // number of blocks besides one for each partition
}

// ShapeOf divides an arena of that many bytes among the partitions of a spool with entries of entry
// bytes. Writes have at least minBlock bytes, unless memory is scarce. ok is false if the arena is
// too small to be useful.
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

// LeastArena is the smallest useful arena for small rows.
func LeastArena(dirs, minBlock int) int64 {
	return int64((minPartitions + spareBlocks*dirs) * min(tinyBlock, minBlock))
}
