package rowcache

import (
	"math/bits"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

const (
	// headsPerSegment x 4 bytes is the unit in which the directory grows.
	segmentBits     = 12
	headsPerSegment = 1 << segmentBits
	segmentBytes    = 4 * headsPerSegment
)

// directory holds the heads of the chains. It is a linear hash table over the low
// bits of a key's hash, as are the slots of the SSD index (AIBox §4.2: level 1 is
// the slot, level 2 the bucket within it). With n chains, 2^d <= n < 2^(d+1), a key
// is in chain c:
//
//	c = hash mod 2^(d+1);  if c >= n then c = hash mod 2^d
//
// So the rows of an SSD slot lie in the chains whose numbers end in the slot's
// bits. An insertion splits one chain at most.
type directory struct {
	heads []uint32 // address space for all heads is reserved
	segs  int64    // segments in use
	n     uint32   // chains
	mask  uint32   // 2^(d+1) - 1
}

func (d *directory) chain(hash uint64) uint32 {
	c := uint32(hash) & d.mask
	low := c & (d.mask >> 1)
	if c >= d.n {
		c = low
	}
	return c
}

func (d *directory) head(c uint32) *uint32 {
	return &d.heads[c]
}

// segmentsFor is the number of segments of a directory with a chain per row.
func segmentsFor(rows int64) int64 {
	return max(1, (rows+headsPerSegment-1)>>segmentBits)
}

// reserve maps address space for that many segments.
func (d *directory) reserve(segs int64) error {
	b, err := offheap.Map(int(segs * segmentBytes))
	if err != nil {
		return err
	}
	d.heads = offheap.Uint32s(b)
	return nil
}

func (d *directory) free() error {
	if d.heads == nil {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(d.heads))), 4*len(d.heads))
	*d = directory{}
	return offheap.Unmap(b)
}

// addSegment makes room for more chains, which split then adds.
func (d *directory) addSegment() {
	d.segs++
	if d.n == 0 {
		d.n, d.mask = 1, 1
	}
}

// canSplit reports whether there is room for another chain.
func (d *directory) canSplit() bool {
	return int64(d.n) < d.segs<<segmentBits
}

// split adds a chain and moves the rows that belong to it. REQUIRES: canSplit.
func (c *Cache) split() {
	d := &c.mu.dir
	from, to := d.n&(d.mask>>1), d.n
	bit := uint64(1) << (bits.Len32(d.mask) - 1)
	var heads [2]uint32
	last := [2]*uint32{&heads[0], &heads[1]}
	for ref := *d.head(from); ref != 0; {
		m := c.meta(ref)
		side := 0
		if c.hash(m.key)&bit != 0 {
			side = 1
		}
		*last[side] = ref
		last[side] = &m.next
		ref = m.next
	}
	*last[0], *last[1] = 0, 0
	*d.head(from), *d.head(to) = heads[0], heads[1]
	d.n++
	d.mask = uint32(1)<<bits.Len32(d.n) - 1
}

// link puts ref at the head of its chain.
func (c *Cache) link(ref uint32, m *meta, hash uint64) {
	d := &c.mu.dir
	if int64(d.n) < c.mu.rows && d.canSplit() {
		c.split()
	}
	h := d.head(d.chain(hash))
	m.next, *h = *h, ref
}

// unlink takes ref out of its chain.
func (c *Cache) unlink(ref uint32, m *meta) {
	d := &c.mu.dir
	at := d.head(d.chain(c.hash(m.key)))
	for *at != ref {
		if *at == 0 {
			panic("rowcache: a row is not in its chain")
		}
		at = &c.meta(*at).next
	}
	*at = m.next
}
