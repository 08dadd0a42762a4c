package slots

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

const (
	// chunkSlots is the number of slots by which the index grows and shrinks in memory: 48 KiB with
	// filters of 16 bytes. So small tables stay small, while the chunks' headers for 20 million
	// keys stay in the second-level cache.
	chunkSlots     = 1 << chunkSlotsBits
	chunkSlotsBits = 11

	slotBytes      = 8  // a location
	maxFilterBytes = 64 // one cache line
	maxProbes      = 5  // of 12 bits each in one 64-bit hash
	probeBits      = 12
	probeRange     = 1 << probeBits
	maxSlots       = 1 << 31

	defaultTargetRows = 24
	// DefaultPageSlots makes pages of 5 KiB with filters of 32 bytes. Smaller pages would cost more
	// overhead in the catalog; larger ones would write more slots that did not change.
	DefaultPageSlots = 128
	maxPageSlots     = chunkSlots // a page lies in one chunk
)

// errFull says that the index has, or would have, 2^31 slots. It still works with the slots that it
// has, but buckets become larger.
var errFull = errors.New("slots: index is full")

// Options describe an index.
type Options struct {
	FilterBytes int // per slot: 0 (no filters) or a multiple of 8 up to 64
	Probes      int // of a filter, 1 to 5; 0: derived from FilterBytes and TargetRows
	TargetRows  int // mean number of rows per slot above which ShouldSplit returns true; 0: 24
	PageSlots   int // slots per page, a power of two up to 2,048; 0: 128
}

func (o *Options) ensureDefaults() {
	if o.TargetRows == 0 {
		o.TargetRows = defaultTargetRows
	}
	if o.PageSlots == 0 {
		o.PageSlots = DefaultPageSlots
	}
}

// Validate returns everything that is wrong with o.
func (o Options) Validate() error {
	o.ensureDefaults()
	var errs []error
	if o.FilterBytes < 0 || o.FilterBytes > maxFilterBytes || o.FilterBytes%8 != 0 {
		errs = append(errs, fmt.Errorf("slots: filters of %d bytes: want a multiple of 8 from 0 to %d", o.FilterBytes, maxFilterBytes))
	}
	if o.Probes < 0 || o.Probes > maxProbes {
		errs = append(errs, fmt.Errorf("slots: %d probes: want 1 to %d, or 0 to have the number chosen", o.Probes, maxProbes))
	}
	if o.TargetRows < 1 || o.TargetRows > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("slots: %d rows a slot: want 1 to %d", o.TargetRows, math.MaxUint16))
	}
	if o.PageSlots < 1 || o.PageSlots > maxPageSlots || bits.OnesCount(uint(o.PageSlots)) != 1 {
		errs = append(errs, fmt.Errorf("slots: pages of %d slots: want a power of two from 1 to %d", o.PageSlots, maxPageSlots))
	}
	return errors.Join(errs...)
}

// Index maps hashes to slots, and slots to the locations and filters of their buckets. The package
// documentation says what may run at the same time.
type Index struct {
	targetRows int64
	pageShift  uint // log2 of the slots per page

	n      uint32 // slots
	mask   uint32 // 2^(L+1) - 1
	filter filterShape
	chunks []chunk

	dirty   bitmap // pages changed since the last Done
	capture *Capture
}

// chunk is the memory of chunkSlots slots, in two mappings.
type chunk struct {
	locations *[chunkSlots]uint64
	filters   []uint64 // chunkSlots x filter words
	memory    []byte   // the mapping of filters; nil: there are none
	marks     *marks
}

const chunkHeaderBytes = int64(unsafe.Sizeof(chunk{}))

// New makes an index with one slot and no bucket.
func New(o Options) (*Index, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.ensureDefaults()
	x := &Index{
		targetRows: int64(o.TargetRows),
		pageShift:  uint(bits.TrailingZeros(uint(o.PageSlots))),
		filter:     shapeOf(o.FilterBytes, o.TargetRows, o.Probes),
	}
	if err := x.addSlot(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	x.touch(0)
	return x, nil
}

// Close frees all memory. The index must not be used any more.
func (x *Index) Close() error {
	var errs []error
	for i := range x.chunks {
		errs = append(errs, x.chunks[i].unmap())
	}
	*x = Index{}
	return errors.Join(errs...)
}

// Slots is the number of slots.
func (x *Index) Slots() uint32 { return x.n }

// Location is the location of the bucket of slot, or 0 if it has none.
func (x *Index) Location(slot uint32) uint64 {
	return x.chunk(slot).locations[slot%chunkSlots]
}

// Set sets the location of the bucket of slot; 0 means that it has none.
func (x *Index) Set(slot uint32, location uint64) {
	x.touch(slot >> x.pageShift)
	x.chunk(slot).locations[slot%chunkSlots] = location
}

func (x *Index) chunk(slot uint32) *chunk {
	if slot >= x.n {
		panic(fmt.Sprintf("slots: slot %d of %d", slot, x.n))
	}
	return &x.chunks[slot>>chunkSlotsBits]
}
