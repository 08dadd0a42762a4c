package memory

import (
	"fmt"
	"math"

	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/offheap"
)

// slabTargetBytes is the maximum size of the rows of a slab, unless a single row is larger. It is
// large enough that the slices that describe a slab are negligible, and small enough that a budget
// of one megabyte can be filled.
const slabTargetBytes = 256 << 10

// slabHeaderBytes is the size of the three slice headers of a slab.
const slabHeaderBytes = 3 * 24

// slabs hold rows and their keys. A row is named by its reference (slab number and row within the
// slab) and never moves. Reference 0 is the shared zero row.
type slabs struct {
	layout layout.Layout
	words  int
	shift  uint
	mask   uint32
	arena  *offheap.Arena

	rows  [][]float32 // per slab, 2^shift rows
	keys  [][]uint64  // of a free row: the reference of the next free one
	marks [][]uint32  // used while a snapshot is written, otherwise 0

	next     uint64 // references from this one on were never used
	freeHead uint32 // first free row below next; 0: none
	freeRows int64
	used     int64 // rows handed out
}

func newSlabs(l layout.Layout, a *offheap.Arena) *slabs {
	s := &slabs{layout: l, words: l.Words(), arena: a, next: 1}
	for (l.Bytes() << (s.shift + 1)) <= slabTargetBytes {
		s.shift++
	}
	s.mask = 1<<s.shift - 1
	return s
}

// slabBytes is the size of one slab with its bookkeeping.
func (s *slabs) slabBytes() int64 {
	return int64(s.layout.Bytes()+8+4)<<s.shift + slabHeaderBytes
}

// slabsFor is the number of slabs that the table needs to have n more rows.
func (s *slabs) slabsFor(n int64) int64 {
	end := int64(s.next) + max(0, n-s.freeRows)
	return max(int64(len(s.rows)), (end+int64(s.mask))>>s.shift)
}

// grow makes room for n more rows.
func (s *slabs) grow(n int64) error {
	if end := int64(s.next) + max(0, n-s.freeRows); end > math.MaxUint32 {
		return fmt.Errorf("sparsetable: %d rows: a table in memory holds at most %d", end-1, uint32(math.MaxUint32)-1)
	}
	for int64(len(s.rows)) < s.slabsFor(n) {
		rows, err := s.arena.Alloc(s.layout.Bytes() << s.shift)
		if err != nil {
			return err
		}
		keys, err := s.arena.Alloc(8 << s.shift)
		if err != nil {
			return err
		}
		marks, err := s.arena.Alloc(4 << s.shift)
		if err != nil {
			return err
		}
		s.rows = append(s.rows, offheap.Float32s(rows))
		s.keys = append(s.keys, offheap.Uint64s(keys))
		s.marks = append(s.marks, offheap.Uint32s(marks))
	}
	return nil
}

// row returns the words of ref.
func (s *slabs) row(ref uint32) []float32 {
	off := int(ref&s.mask) * s.words
	return s.rows[ref>>s.shift][off : off+s.words : off+s.words]
}

func (s *slabs) key(ref uint32) uint64   { return s.keys[ref>>s.shift][ref&s.mask] }
func (s *slabs) mark(ref uint32) *uint32 { return &s.marks[ref>>s.shift][ref&s.mask] }

// trained reports whether ref is neither a placeholder nor free.
func (s *slabs) trained(ref uint32) bool {
	return math.Float32bits(s.rows[ref>>s.shift][int(ref&s.mask)*s.words+s.words-1]) != 0
}

// take hands out a row of zeros for key. REQUIRES: grow made room.
func (s *slabs) take(key uint64) uint32 {
	ref := s.freeHead
	if ref != 0 {
		s.freeHead = uint32(s.key(ref))
		s.freeRows--
	} else {
		ref = uint32(s.next)
		s.next++
	}
	s.keys[ref>>s.shift][ref&s.mask] = key
	s.used++
	return ref
}

// put frees the row of ref.
func (s *slabs) put(ref uint32) {
	clear(s.row(ref))
	s.keys[ref>>s.shift][ref&s.mask] = uint64(s.freeHead)
	s.freeHead = ref
	s.freeRows++
	s.used--
}
