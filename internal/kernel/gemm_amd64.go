package kernel

import (
	"sync"
	"unsafe"
)

// Blocking of the matrix product, after Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008). The product is cut along n
// and k into blocks of B that all threads pack together, then along m and n
// into units that the threads compute on their own:
//
//	for each block of maxColumns columns of C
//	  for each block of maxDepth steps of k
//	    pack B into panels as wide as a tile          (in parallel)
//	    for each unit of C                            (in parallel)
//	      pack the unit's rows of A
//	      for each panel of B                         stays in the L1 cache
//	        for each tile of rows of A                stays in the L2 cache
//	          tile kernel
//
// Where few tiles would use a packed matrix again, the kernels read it where it
// lies.
const (
	// A panel of B, 384 steps of 32 columns, is 48 KiB: the L1 cache of present
	// Intel servers; AMD's 32 KiB refill from L2 fast enough.
	maxDepth = 384
	// A unit's rows of A are at most 224·384·4 bytes = 336 KiB: they leave room
	// for B in an L2 cache of 1 MiB.
	maxRows = 224
	// Packed B is at most 6 MiB.
	maxColumns = 4096
	// A is packed only if a unit has this many panels to use it. Measured on Zen
	// 4: with 4 panels packing loses 10 % for a transposed A, with 16 it gains as
	// much where rows are a power of two apart.
	packAFrom = 8
	// B is packed only if this many rows use it. Measured on Zen 4: with 64 rows
	// packing loses 15 %, with 256 some 3 %, with 2048 it gains.
	packBFrom = 256
	// unitWork is how many multiply-adds a unit must have to be worth a goroutine, which
	// take about 10 microseconds.
	unitWork = 512 << 10
	// packWork is how many elements a range must have to be worth a goroutine that packs.
	packWork = 32 << 10
)

const floatBytes = 4

func gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	var set *tileSet
	switch level.Load() {
	case levelAVX512:
		set = &tiles512
	case levelAVX2:
		set = &tiles256
	default:
		gemmPortable(transA, transB, m, n, k, a, lda, b, ldb, accumulate, c, ldc)
		return
	}
	if n == 1 && transA && ldc == 1 {
		// C is a row as well as a column: let vectors run along m, where A is
		// contiguous. Products commute, so the chains stay the same.
		transA, transB, m, n, a, lda, b, ldb, ldc = !transB, false, 1, m, b, ldb, a, lda, m
	}
	p := products.Get().(*product)
	p.set, p.transA, p.transB = set, transA, transB
	p.a, p.lda, p.b, p.ldb, p.c, p.ldc = a, lda, b, ldb, c, ldc
	p.m = m
	for j := 0; j < n; j += maxColumns {
		p.column, p.columns = j, min(maxColumns, n-j)
		depths := (k + maxDepth - 1) / maxDepth
		for i := range depths {
			// Blocks of even depth.
			p.step, p.steps = i*k/depths, (i+1)*k/depths-i*k/depths
			p.fromC = accumulate || i > 0
			p.block()
		}
	}
	p.a, p.b, p.c = nil, nil, nil
	products.Put(p)
}

// product is one matrix product, at work on one block of B at a time.
type product struct {
	set            *tileSet
	transA, transB bool
	a, b, c        []float32
	lda, ldb, ldc  int
	m              int

	column, columns int  // of C in the block
	step, steps     int  // of k in the block
	fromC           bool // whether the chains start from C

	packB  bool
	packed []float32 // panels of B, if packB

	unitRows    int // rows of a unit, a multiple of the tile's
	unitPanels  int // panels of a unit
	rowUnits    int // units along m
	columnUnits int // units along n
}

var products = sync.Pool{New: func() any { return new(product) }}

// block adds the present block of B to C.
func (p *product) block() {
	width := p.set.columns()
	panels := (p.columns + width - 1) / width
	p.packB = p.transB || p.m >= packBFrom
	if p.packB {
		p.packed = grow(p.packed, panels*width*p.steps)
		parallel(panels, max(1, packWork/(width*p.steps)), (*packing)(p))
	}
	p.cutUnits(panels)
	work := p.unitRows * p.unitPanels * width * p.steps
	parallel(p.rowUnits*p.columnUnits, max(1, unitWork/work), p)
}

// cutUnits decides which rectangles of C are computed at once.
func (p *product) cutUnits(panels int) {
	height := p.set.rows()
	// There should be enough units that threads which start late or are interrupted do not
	// delay the others much. But no unit should have less work than unitWork, or so few rows
	// that B is read for a few tiles only.
	want := 1
	if t := Threads(); t > 1 {
		want = max(1, min(4*t, p.m*p.columns*p.steps/unitWork))
	}
	p.rowUnits = max((p.m+maxRows-1)/maxRows, min(want, (p.m+4*height-1)/(4*height)))
	p.unitRows = ((p.m+p.rowUnits-1)/p.rowUnits + height - 1) / height * height
	p.rowUnits = (p.m + p.unitRows - 1) / p.unitRows
	p.columnUnits = min(panels, (want+p.rowUnits-1)/p.rowUnits)
	p.unitPanels = (panels + p.columnUnits - 1) / p.columnUnits
	p.columnUnits = (panels + p.unitPanels - 1) / p.unitPanels
}

// run computes units lo to hi. Units that follow one another share their rows.
func (p *product) run(lo, hi int) {
	w := workers.Get().(*worker)
	for u := lo; u < hi; u++ {
		row, panel := u/p.columnUnits*p.unitRows, u%p.columnUnits*p.unitPanels
		if u == lo || u%p.columnUnits == 0 {
			w.setRows(p, row, min(p.unitRows, p.m-row))
		}
		w.compute(p, panel)
	}
	w.t = tile{}
	w.a = nil
	workers.Put(w)
}

// worker is the state of one goroutine within run.
type worker struct {
	t    tile
	buf  []float32 // packed rows of A
	row  int       // first row of the unit
	rows int

	// Element (r, s) of the unit's part of op(A) is at a + (r/group)·groupStep +
	// (r%group)·t.aRow + s·t.aCol bytes.
	a         unsafe.Pointer
	group     int
	groupStep uintptr
}

var workers = sync.Pool{New: func() any { return new(worker) }}

// setRows makes the rows of op(A) at row available to the kernels.
func (w *worker) setRows(p *product, row, rows int) {
	w.row, w.rows = row, rows
	height := p.set.rows()
	if p.unitPanels >= packAFrom {
		w.pack(p, height)
		return
	}
	w.group = height
	if p.transA {
		w.a = at(p.a, p.step*p.lda+row)
		w.t.aRow, w.t.aCol = floatBytes, floatBytes*uintptr(p.lda)
	} else {
		w.a = at(p.a, row*p.lda+p.step)
		w.t.aRow, w.t.aCol = floatBytes*uintptr(p.lda), floatBytes
	}
	w.groupStep = uintptr(height) * w.t.aRow
}

// compute computes the unit of the present rows that starts at panel first.
func (w *worker) compute(p *product, first int) {
	width := p.set.columns()
	t := &w.t
	t.k = p.steps
	t.cRow = floatBytes * uintptr(p.ldc)
	t.fromC = p.fromC
	for panel := first; panel < first+p.unitPanels && panel*width < p.columns; panel++ {
		j := panel * width // within the block
		columns := min(width, p.columns-j)
		if p.packB {
			t.b = at(p.packed, j*p.steps)
			t.bRow = floatBytes * uintptr(width)
		} else {
			t.b = at(p.b, p.step*p.ldb+p.column+j)
			t.bRow = floatBytes * uintptr(p.ldb)
		}
		vectors := (columns + p.set.vector - 1) / p.set.vector
		t.lanes = columns - (vectors-1)*p.set.vector
		for r, i := 0, 0; r < w.rows; {
			// The highest kernel that fits; it cannot cross a group of rows,
			// since only the last group is cut short.
			for p.set.kernels[i].rows > w.rows-r {
				i++
			}
			kernel := &p.set.kernels[i]
			t.a = unsafe.Add(w.a, uintptr(r/w.group)*w.groupStep+uintptr(r%w.group)*t.aRow)
			t.c = at(p.c, (w.row+r)*p.ldc+p.column+j)
			if t.lanes == p.set.vector {
				kernel.full[vectors-1](t)
			} else {
				kernel.part[vectors-1](t)
			}
			r += kernel.rows
		}
	}
}

// at returns the address of element i of x.
func at(x []float32, i int) unsafe.Pointer { return unsafe.Pointer(&x[i]) }
