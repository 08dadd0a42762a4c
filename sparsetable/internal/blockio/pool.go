package blockio

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

// ErrPoolLimit is wrapped by Get when the pool's limit would be exceeded.
var ErrPoolLimit = errors.New("blockio: buffer pool is at its limit")

// slabBytes is the size of a slab, which is divided into smaller buffers; larger buffers are mapped
// one by one. A slab of 1 MiB has a few hundred buffers of 4 KiB, and a small pool grows by one
// slab at a time.
const slabBytes = 1 << 20

// slabsPerLimit is the least number of slabs of a limited pool: buffers come in up to twenty
// classes, a few of which are in use at a time.
const slabsPerLimit = 64

// A Pool hands out buffers that are aligned to a unit and lie outside the garbage collector's heap.
// Sizes are rounded up to a class: 1, 2, 3, 4, 6, 8, 12, 16, … units, so that at most a third is
// wasted. The memory of returned buffers is kept for the next Get of the same class, and unmapped
// by Close.
type Pool struct {
	unit  int
	limit int64
	slab  int // bytes mapped at a time for buffers smaller than that

	mu struct {
		sync.Mutex
		classes  []poolClass
		slabs    []poolSlab
		mapped   int64
		inUse    int64
		returned bool // Close was called
	}
}

// poolSlab is memory that is divided into buffers of one class.
type poolSlab struct {
	memory []byte
	class  int
	size   int // of a buffer
}

// poolClass has the free buffers of one size.
type poolClass struct {
	free []unsafe.Pointer
}

// NewPool returns a pool of buffers aligned to unit, a power of two from 512 to
// 4096. limitBytes bounds the memory that it maps; 0 means no limit.
func NewPool(unit int, limitBytes int64) *Pool {
	if unit < minUnit || unit > maxUnit || unit&(unit-1) != 0 {
		panic(fmt.Sprintf("blockio: a pool with units of %d bytes: want a power of two from %d to %d", unit, minUnit, maxUnit))
	}
	p := &Pool{unit: unit, limit: limitBytes, slab: slabBytes}
	if limitBytes > 0 {
		// A class that holds few buffers must not take the room of the others.
		p.slab = int(min(slabBytes, inPages(max(1, limitBytes/slabsPerLimit))))
	}
	return p
}

// Unit is the alignment of the pool's buffers.
func (p *Pool) Unit() int { return p.unit }

// class returns the class for n bytes and the size of its buffers. Even classes are powers of two
// units; odd ones lie half-way between.
func (p *Pool) class(n int) (int, int) {
	u := max(1, (n+p.unit-1)/p.unit)
	if u == 1 {
		return 0, p.unit
	}
	b := bits.Len(uint(u - 1)) // 2^(b-1) < u <= 2^b
	if mid := 3 << b / 4; b >= 2 && u <= mid {
		return 2*b - 1, mid * p.unit
	}
	return 2 * b, p.unit << b
}

// Get returns an aligned buffer of n bytes with unknown contents. It must be returned by Put, whole
// or shortened, but starting at the same byte.
func (p *Pool) Get(n int) ([]byte, error) {
	class, size := p.class(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.returned {
		return nil, fmt.Errorf("%w: buffer pool", ErrClosed)
	}
	for len(p.mu.classes) <= class {
		p.mu.classes = append(p.mu.classes, poolClass{})
	}
	if len(p.mu.classes[class].free) == 0 {
		if err := p.growLocked(class, size); err != nil {
			larger := p.largerLocked(class)
			if larger < 0 {
				return nil, err
			}
			class, size = larger, p.classBytes(larger)
		}
	}
	return p.takeLocked(class, size)[:n], nil
}

// takeLocked hands out a free buffer of a class. REQUIRES: there is one.
func (p *Pool) takeLocked(class, size int) []byte {
	c := &p.mu.classes[class]
	last := len(c.free) - 1
	b := unsafe.Slice((*byte)(c.free[last]), size)
	c.free = c.free[:last]
	p.mu.inUse += int64(size)
	return b
}

// GetBeyond is Get, but exceeds the limit if there is no room. It is for callers that cannot wait
// until other buffers are returned. Memory beyond the limit is unmapped when its buffer is
// returned.
func (p *Pool) GetBeyond(n int) ([]byte, error) {
	b, err := p.Get(n)
	if !errors.Is(err, ErrPoolLimit) {
		return b, err
	}
	class, size := p.class(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.mapLocked(class, size, smallestMapping(size)); err != nil {
		return nil, err
	}
	return p.takeLocked(class, size)[:n], nil
}

// largerLocked is the first larger class with a free buffer, or -1 if there is none. Put derives
// the class of a buffer from its capacity, so a buffer of a larger class can be used instead.
func (p *Pool) largerLocked(class int) int {
	for i := class + 1; i < len(p.mu.classes); i++ {
		if len(p.mu.classes[i].free) > 0 {
			return i
		}
	}
	return -1
}

// classBytes is the size of the buffers of a class.
func (p *Pool) classBytes(class int) int {
	if class%2 == 1 {
		return 3 << ((class + 1) / 2) / 4 * p.unit
	}
	return p.unit << (class / 2)
}

// growLocked maps memory for buffers of size bytes. REQUIRES: mu is held.
func (p *Pool) growLocked(class, size int) error {
	bytes := size * max(1, p.slab/size)
	if p.limit > 0 && p.mu.mapped+inPages(int64(bytes)) > p.limit {
		p.reclaimLocked()
	}
	if p.limit > 0 && p.mu.mapped+inPages(int64(bytes)) > p.limit {
		// Close to the limit, a small pool maps a single buffer, or a page of small ones.
		if bytes = smallestMapping(size); p.mu.mapped+inPages(int64(bytes)) > p.limit {
			return fmt.Errorf("%w: %d bytes mapped, %d more needed, limit %d", ErrPoolLimit, p.mu.mapped, bytes, p.limit)
		}
	}
	return p.mapLocked(class, size, bytes)
}

// inPages is the memory that a mapping takes: whole pages.
func inPages(bytes int64) int64 { return (bytes + maxUnit - 1) &^ (maxUnit - 1) }

// smallestMapping is the size of the smallest mapping for buffers of that many bytes.
func smallestMapping(size int) int { return size * max(1, maxUnit/size) }

// mapLocked maps that many bytes for buffers of a class. REQUIRES: mu is held.
func (p *Pool) mapLocked(class, size, bytes int) error {
	m, err := mapMemory(bytes)
	if err != nil {
		return err
	}
	p.mu.slabs = append(p.mu.slabs, poolSlab{m, class, size})
	p.mu.mapped += inPages(int64(bytes))
	c := &p.mu.classes[class]
	for at := bytes - size; at >= 0; at -= size {
		c.free = append(c.free, unsafe.Pointer(&m[at]))
	}
	return nil
}

// reclaimLocked unmaps the slabs without a buffer in use. It examines every free buffer, but it is
// only called when the pool is at its limit and needs other sizes than before.
func (p *Pool) reclaimLocked() {
	kept := p.mu.slabs[:0]
	for _, s := range p.mu.slabs {
		c := &p.mu.classes[s.class]
		from := uintptr(unsafe.Pointer(unsafe.SliceData(s.memory)))
		inside := func(b unsafe.Pointer) bool { return uintptr(b)-from < uintptr(len(s.memory)) }
		free := 0
		for _, b := range c.free {
			if inside(b) {
				free++
			}
		}
		if free < len(s.memory)/s.size {
			kept = append(kept, s)
			continue
		}
		c.free = slices.DeleteFunc(c.free, inside)
		p.mu.mapped -= inPages(int64(len(s.memory)))
		unmapMemory(s.memory)
	}
	clear(p.mu.slabs[len(kept):])
	p.mu.slabs = kept
}

// Put returns a buffer of Get.
func (p *Pool) Put(b []byte) {
	class, size := p.class(cap(b))
	if size != cap(b) {
		panic(fmt.Sprintf("blockio: a buffer of capacity %d was returned to a pool that it did not come from", cap(b)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.classes[class].free = append(p.mu.classes[class].free, unsafe.Pointer(unsafe.SliceData(b)))
	p.mu.inUse -= int64(size)
	if p.mu.inUse < 0 {
		panic("blockio: a buffer was returned to its pool twice")
	}
	if p.limit > 0 && p.mu.mapped > p.limit {
		p.reclaimLocked()
	}
	if p.mu.returned && p.mu.inUse == 0 {
		p.unmapLocked()
	}
}

// Bytes returns the size of the mapped memory, used or not.
func (p *Pool) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.mapped
}

// InUse returns the bytes of buffers that are handed out.
func (p *Pool) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.inUse
}

// Close unmaps everything, at once or when the last buffer is returned.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.returned {
		return
	}
	p.mu.returned = true
	if p.mu.inUse == 0 {
		p.unmapLocked()
	}
}

// unmapLocked unmaps all memory. REQUIRES: mu is held, nothing is in use.
func (p *Pool) unmapLocked() {
	for _, s := range p.mu.slabs {
		unmapMemory(s.memory)
	}
	p.mu.slabs, p.mu.classes, p.mu.mapped = nil, nil, 0
}
