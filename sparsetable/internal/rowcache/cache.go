package rowcache

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

// Options describe a cache.
type Options struct {
	Words    int   // 32-bit words of a row
	MaxBytes int64 // hard limit on Bytes()
	Policy   string
	// Hash mixes a key. The hashes that callers pass must be its results.
	Hash func(key uint64) uint64
	// LookaheadPasses is how many passes ahead the policy Lookahead may look. 0 means as many as
	// the tables in an eighth of MaxBytes can describe, at most 50, or 100 with NoteMissing.
	LookaheadPasses int
	// NoteMissing says that the cache also notes which announced keys are not
	// cached (see Missed), provided that the window still has room for 50 passes.
	NoteMissing bool
}

const (
	// A slab is about 1/128 of the budget, so that less than 1 % of the budget is left over. Slabs
	// below minSlabBytes gain nothing; slabs above maxSlabBytes would take long to map and to give
	// back.
	slabsPerBudget = 128
	minSlabBytes   = 16 << 10
	maxSlabBytes   = 64 << 20
	pageBytes      = 4096
)

// Validate returns everything that is wrong with o.
func (o *Options) Validate() error {
	var errs []error
	if o.Words < 1 || o.Words > 1<<16 {
		errs = append(errs, fmt.Errorf("rowcache: rows of %d words: want 1 to %d", o.Words, 1<<16))
	}
	if _, err := policyNamed(o.Policy); err != nil {
		errs = append(errs, err)
	}
	if o.Hash == nil {
		errs = append(errs, errors.New("rowcache: no hash function"))
	}
	if o.LookaheadPasses < 0 {
		errs = append(errs, fmt.Errorf("rowcache: %d passes to look ahead: want 0 (as many as fit) or more", o.LookaheadPasses))
	}
	if len(errs) == 0 {
		if need := o.geometry().minBytes(); o.MaxBytes < need {
			errs = append(errs, fmt.Errorf("rowcache: budget of %d bytes: want at least %d", o.MaxBytes, need))
		}
	}
	return errors.Join(errs...)
}

// geometry says how rows are divided into slabs.
type geometry struct {
	words     int
	shift     uint // 2^shift rows a slab
	slabBytes int64
	maxSlabs  int64
	fixed     int64 // bytes of an empty cache, without slabs and directory
}

// slabHeaderBytes is the bookkeeping per slab in Go slices.
const slabHeaderBytes = int64(unsafe.Sizeof(slab{})) + 8 + 24

func (o *Options) geometry() geometry {
	g := geometry{words: o.Words}
	rowBytes := int64(4*o.Words + metaBytes)
	target := min(max(o.MaxBytes/slabsPerBudget, minSlabBytes), maxSlabBytes)
	for rowBytes<<(g.shift+1) <= target {
		g.shift++
	}
	g.slabBytes = roundUp(rowBytes<<g.shift, pageBytes)
	g.maxSlabs = max(1, min(o.MaxBytes/g.slabBytes, 1<<(32-g.shift)))
	g.fixed = int64(unsafe.Sizeof(Cache{})) + g.maxSlabs*slabHeaderBytes + 4096
	return g
}

// minBytes is the smallest budget that works: two slabs, of which the first
// lacks a row for the shared zero row, and the directory.
func (g geometry) minBytes() int64 {
	return g.fixed + 2*g.slabBytes + segmentBytes*segmentsFor(2<<g.shift)
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// slab is the bookkeeping of one slab.
type slab struct {
	memory []byte // metas, then rows; nil: not mapped
	free   uint32 // first free row that was in use before; 0: none
	fresh  uint32 // rows from here on were never used
	used   uint32 // rows in use
	listed bool   // is in Cache.mu.open
}

// Cache holds rows in memory. The package documentation says what may run at the same time.
type Cache struct {
	geometry
	rowMask uint32
	rules   rules
	hash    func(uint64) uint64

	announcing sync.Mutex // before mu
	missed     [lockKeys]uint64

	mu struct {
		sync.Mutex
		maxBytes int64
		region   []byte // room for all slabs, in order
		bytes    int64
		slabs    []slab
		metas    []unsafe.Pointer  // metas of slab i; nil: not mapped
		floats   [][]float32       // rows of slab i; nil: not mapped
		open     []uint32          // slabs with free rows; the last is used first
		retired  int               // the slab being emptied; -1: none
		rows     int64             // in use, without the zero row
		taken    int64             // rows handed out by Victims
		morePins map[uint32]uint32 // pins of a row beyond maxPins
		parity   uint32            // 0 or Old: the bit of rows that are not Old
		dir      directory
		hand     uint32 // where Victims continues
		epoch    uint32
		pinsLeft int64 // until the next epoch
		random   uint64
		win      window
		stats    Stats
		closed   bool
		tally
		work work // of the holder of mu
	}
	// sharing guards the tally and morePins while several threads work for the holder of mu.
	sharing sync.Mutex
	part    func(lo, hi int) // doPart, bound once so that sharing work makes no garbage
}

// New makes an empty cache.
func New(o Options) (*Cache, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r, err := policyNamed(o.Policy)
	if err != nil {
		return nil, err
	}
	c := &Cache{geometry: o.geometry(), rules: r, hash: o.Hash}
	c.rowMask = 1<<c.shift - 1
	c.part = c.doPart
	c.mu.maxBytes = o.MaxBytes
	c.mu.bytes = c.fixed
	c.mu.retired = -1
	c.mu.slabs = make([]slab, 0, c.maxSlabs)
	c.mu.metas = make([]unsafe.Pointer, 0, c.maxSlabs)
	c.mu.floats = make([][]float32, 0, c.maxSlabs)
	c.mu.open = make([]uint32, 0, c.maxSlabs)
	if c.mu.region, err = offheap.Map(int(c.maxSlabs * c.slabBytes)); err != nil {
		return nil, fmt.Errorf("rowcache: reserve memory for rows: %w", err)
	}
	if err := c.mu.dir.reserve(segmentsFor(c.maxSlabs << c.shift)); err != nil {
		return nil, errors.Join(fmt.Errorf("rowcache: reserve memory for the directory: %w", err), c.Close())
	}
	if r.window {
		c.mu.win.init(o.LookaheadPasses, o.NoteMissing, min(o.MaxBytes/WindowShare, o.MaxBytes-c.minBytes()))
	}
	if err := c.addSlab(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.mu.slabs[0].fresh = 1 // row 0 is the shared zero row
	c.mu.slabs[0].used = 1  // and keeps its slab for good
	c.startEpoch()
	return c, nil
}

// Close unmaps everything. No row may be in use.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil
	}
	c.mu.closed = true
	var errs []error
	errs = append(errs, offheap.Unmap(c.mu.region), c.mu.dir.free())
	c.mu.region = nil
	errs = append(errs, c.mu.win.close())
	c.mu.slabs, c.mu.metas, c.mu.floats, c.mu.dir = nil, nil, nil, directory{}
	return errors.Join(errs...)
}

// Slabs returns the rows as a working set sees them: the words of row ref are the Words words from
// (ref & mask) x Words on in slab ref >> shift. The slice is not a copy; later slabs are appended
// to it, and slabs that hold a pinned row stay.
func (c *Cache) Slabs() (slabs [][]float32, shift uint, mask uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.floats, c.shift, c.rowMask
}

// meta returns the metadata of ref.
func (c *Cache) meta(ref uint32) *meta {
	return (*meta)(unsafe.Add(c.mu.metas[ref>>c.shift], uintptr(ref&c.rowMask)*metaBytes))
}

// row returns the words of ref.
func (c *Cache) row(ref uint32) []float32 {
	at := int(ref&c.rowMask) * c.words
	return c.mu.floats[ref>>c.shift][at : at+c.words : at+c.words]
}

// slabNeed is the number of bytes for another slab, with its share of the directory.
func (c *Cache) slabNeed() int64 {
	segs := segmentsFor(int64(c.mapped()+1) << c.shift)
	return c.slabBytes + max(0, segs-c.mu.dir.segs)*segmentBytes
}

// mapped is the number of slabs that have memory.
func (c *Cache) mapped() int {
	n := 0
	for i := range c.mu.slabs {
		if c.mu.slabs[i].memory != nil {
			n++
		}
	}
	return n
}

// budget is the limit for the whole cache, less the bytes that the window is waiting for.
func (c *Cache) budget() int64 { return c.mu.maxBytes - c.mu.win.waiting }

// addSlab makes room for 2^shift more rows. It returns errFull if the budget does not allow it.
func (c *Cache) addSlab() error {
	at := 0
	for at < len(c.mu.slabs) && c.mu.slabs[at].memory != nil {
		at++
	}
	if int64(at) == c.maxSlabs || c.mu.bytes+c.slabNeed() > c.budget() {
		return errFull
	}
	for segs := segmentsFor(int64(c.mapped()+1) << c.shift); c.mu.dir.segs < segs; {
		c.mu.dir.addSegment()
		c.mu.bytes += segmentBytes
	}
	b := c.mu.region[int64(at)*c.slabBytes:][:c.slabBytes:c.slabBytes]
	c.mu.bytes += c.slabBytes
	if at == len(c.mu.slabs) {
		c.mu.slabs = append(c.mu.slabs, slab{})
		c.mu.metas = append(c.mu.metas, nil)
		c.mu.floats = append(c.mu.floats, nil)
	}
	// The metas come first: they are aligned to the processor's cache lines.
	metas := metaBytes << c.shift
	c.mu.slabs[at] = slab{memory: b}
	c.mu.metas[at] = unsafe.Pointer(unsafe.SliceData(b))
	c.mu.floats[at] = offheap.Float32s(b[metas : metas+4*c.words<<c.shift])
	c.list(uint32(at))
	return nil
}

// list records that slab i has free rows.
func (c *Cache) list(i uint32) {
	if s := &c.mu.slabs[i]; !s.listed && int(i) != c.mu.retired {
		s.listed = true
		c.mu.open = append(c.mu.open, i)
	}
}

// errFull: there is no free row, and the budget allows no further slab.
var errFull = errors.New("rowcache: the budget is reached")

// take returns a free row. It fails with errFull, or if memory cannot be mapped.
func (c *Cache) take() (uint32, error) {
	for {
		if len(c.mu.open) == 0 {
			if err := c.addSlab(); err != nil {
				return 0, err
			}
		}
		last := len(c.mu.open) - 1
		i := c.mu.open[last]
		s := &c.mu.slabs[i]
		var ref uint32
		switch {
		case s.free != 0:
			ref = s.free
			s.free = uint32(c.meta(ref).key)
		case s.fresh <= c.rowMask:
			ref = i<<c.shift | s.fresh
			s.fresh++
		default:
			s.listed = false
			c.mu.open = c.mu.open[:last]
			continue
		}
		s.used++
		c.mu.rows++
		return ref, nil
	}
}

// put makes the row of ref free.
func (c *Cache) put(ref uint32, m *meta) {
	i := ref >> c.shift
	s := &c.mu.slabs[i]
	*m = meta{key: uint64(s.free)}
	s.free = ref
	s.used--
	c.mu.rows--
	c.list(i)
}

// startEpoch begins an epoch, which lasts for epochUses pins per row that the cache can hold.
func (c *Cache) startEpoch() {
	c.mu.epoch = (c.mu.epoch + 1) % epochCount
	fit := c.mu.maxBytes / (c.slabBytes >> c.shift)
	c.mu.pinsLeft = epochUses * max(fit, 1<<bits.Len32(c.rowMask))
}
