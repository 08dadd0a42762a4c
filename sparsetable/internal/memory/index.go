package memory

import (
	"errors"
	"math/bits"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

const (
	// segmentSlots x 8 bytes, 32 KiB, fit a first-level cache, so that splitting a segment takes
	// only microseconds.
	segmentSlots     = 4096
	segmentSlotsBits = 12
	segmentBytes     = int64(unsafe.Sizeof(segment{})) + 8 // and the pointer to it
	// rowsPerSegment is the mean number of rows per segment at which the index gets another
	// segment. A segment that was not yet split in a round of linear hashing holds up to twice the
	// mean: 2 x 1,638 rows are 80 % of its slots. The standard deviation around that is 57 rows, so
	// a full segment is 14 standard deviations away.
	rowsPerSegment = segmentSlots * 2 / 5
)

var errSegmentFull = errors.New("sparsetable: a segment of the index is full: far more keys fall into it than chance allows")

// index finds the reference of a key. It is a linear hash table of segments, each of which is an
// open-addressing table with linear probing:
//
//	tag      the upper 32 bits of the key's hash
//	segment  tag mod 2^(d+1), or mod 2^d where that segment does not exist yet
//	slot     tag >> 20, and the slots that follow
//	entry    tag << 32 | ref; 0 is empty (reference 0 is never stored)
//
// A split moves the entries of one segment by their tags only and reads no keys. A lookup compares
// the key in its slab if the tag matches.
type index struct {
	seed    uint64 // random, so that nobody can choose keys that collide
	arena   *offheap.Arena
	segs    []*segment
	scratch [segmentSlots]uint64
}

type segment struct {
	slots [segmentSlots]uint64
	used  uint64 // number of used slots; one stays empty, at which every probe ends
}

// segmentsFor is the number of segments for n rows.
func segmentsFor(n int64) int64 { return max(1, (n+rowsPerSegment-1)/rowsPerSegment) }

// tag is the upper half of MurmurHash3's 64-bit finalizer over the seeded key.
func (x *index) tag(key uint64) uint32 {
	h := key ^ x.seed
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return uint32(h >> 32)
}

// segment returns the segment that tag belongs to.
func (x *index) segment(tag uint32) *segment {
	n := uint32(len(x.segs))
	round := uint32(1) << (bits.Len32(n) - 1) // 2^d <= n
	i := tag & (2*round - 1)
	if i >= n {
		i &= round - 1
	}
	return x.segs[i]
}

// find returns the reference of key, 0 if it has none.
func (x *index) find(key uint64, s *slabs) uint32 {
	tag := x.tag(key)
	seg := x.segment(tag)
	for i := tag >> (32 - segmentSlotsBits); ; i++ {
		e := seg.slots[i%segmentSlots]
		if e == 0 {
			return 0
		}
		if uint32(e>>32) == tag && s.key(uint32(e)) == key {
			return uint32(e)
		}
	}
}

// ahead is how many keys findAll looks up side by side, so that their misses of the processor's
// cache overlap instead of adding up.
const ahead = 32

// findAll sets refs to the results of find for keys. Most keys are in the first slot that they hash
// to. So the first loops for a group of keys load only these slots and the keys of their rows,
// without branches that depend on what they load: the processor runs ahead and starts the loads of
// many keys before the first has arrived.
func (x *index) findAll(keys []uint64, refs []uint32, s *slabs) {
	var tags [ahead]uint32
	var entries, found [ahead]uint64
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		for i, key := range keys[:n] {
			tag := x.tag(key)
			tags[i&(ahead-1)] = tag
			entries[i&(ahead-1)] = x.segment(tag).slots[tag>>(32-segmentSlotsBits)]
		}
		for i, e := range entries[:n] {
			found[i] = s.key(uint32(e)) // reference 0 has a key, too
		}
		for i, key := range keys[:n] {
			e := entries[i&(ahead-1)]
			ref := uint32(e)
			if e == 0 || uint32(e>>32) == tags[i&(ahead-1)] && found[i&(ahead-1)] == key {
				refs[i] = ref
				continue
			}
			refs[i] = x.find(key, s)
		}
		keys, refs = keys[n:], refs[n:]
	}
}

// insert adds key, which must be absent.
func (x *index) insert(key uint64, ref uint32) error {
	tag := x.tag(key)
	return x.segment(tag).insert(uint64(tag)<<32 | uint64(ref))
}

func (g *segment) insert(e uint64) error {
	if g.used == segmentSlots-1 {
		return errSegmentFull
	}
	g.used++
	i := e >> (64 - segmentSlotsBits)
	for g.slots[i%segmentSlots] != 0 {
		i++
	}
	g.slots[i%segmentSlots] = e
	return nil
}

// remove deletes key, which must be present, and closes the gap.
func (x *index) remove(key uint64, ref uint32) {
	tag := x.tag(key)
	seg := x.segment(tag)
	seg.used--
	e := uint64(tag)<<32 | uint64(ref)
	gap := e >> (64 - segmentSlotsBits)
	for seg.slots[gap%segmentSlots] != e {
		gap++
	}
	for i := gap + 1; ; i++ {
		next := seg.slots[i%segmentSlots]
		if next == 0 {
			break
		}
		// next may move to the gap unless the gap lies before next's own slot.
		home := next >> (64 - segmentSlotsBits)
		if (i-home)%segmentSlots >= i-gap {
			seg.slots[gap%segmentSlots] = next
			gap = i
		}
	}
	seg.slots[gap%segmentSlots] = 0
}

// grow splits segments until there are n.
func (x *index) grow(n int64) error {
	for int64(len(x.segs)) < n {
		b, err := x.arena.Alloc(int(unsafe.Sizeof(segment{})))
		if err != nil {
			return err
		}
		fresh := (*segment)(unsafe.Pointer(unsafe.SliceData(b)))
		count := uint32(len(x.segs))
		x.segs = append(x.segs, fresh)
		if count == 0 {
			continue
		}
		round := uint32(1) << (bits.Len32(count) - 1)
		old := x.segs[count-round]
		x.scratch = old.slots
		*old = segment{}
		for _, e := range x.scratch {
			if e == 0 {
				continue
			}
			to := old
			if uint32(e>>32)&round != 0 {
				to = fresh
			}
			if err := to.insert(e); err != nil {
				return err // cannot happen: both hold no more than old did
			}
		}
	}
	return nil
}
