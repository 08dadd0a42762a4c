package kernel

import "unsafe"

// Blocking of the matrix product, after Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008). The product is cut along n
// and k into blocks of B that are packed at a time, then along m and k:
//
//	for each block of maxColumns columns of C
//	  for each phase: as many steps of k as maxPacked allows
//	    pack B into panels as wide as a tile
//	    for each block of rows of C
//	      for each block of maxDepth steps of k
//	        pack the rows of A
//	        for each panel of B                       stays in the L1 cache
//	          for each tile of rows of A              stays in the L2 cache
//	            tile kernel
//
// Where few tiles would use a packed matrix again, the kernels read it where it
// lies.
const (
	// A panel of B, 384 steps of 32 columns, is 48 KiB: the L1 cache of current Intel servers.
	// AMD's 32 KiB are refilled from L2 fast enough.
	maxDepth = 384
	// A block's rows of A are at most 224·384·4 bytes = 336 KiB: they leave room
	// for B in an L2 cache of 1 MiB.
	maxRows = 224
	// A block of B that is packed at once has at most this many columns. It has at most about
	// maxPacked elements, which stay in the L2 cache, but at least one block of steps.
	maxColumns = 4096
	maxPacked  = 3 << 16
	// A is packed only if this many panels use it. Measured on Zen
	// 4: with 4 panels packing loses 10 % for a transposed A, with 16 it gains as
	// much where rows are a power of two apart.
	packAFrom = 8
	// B is packed only if this many rows use it. Measured on Zen 4: with 64 rows
	// packing loses 15 %, with 256 some 3 %, with 2048 it gains.
	packBFrom = 256
)

// product is one matrix product, at work on one phase at a time.
type product struct {
	operands
	phase
	packing
	ahead    ahead
	set      *tileSet
	epilogue *Epilogue // nil if there is none
	own      worker
}

// operands are the matrices of a product: C, of m rows, is or gets A times B.
type operands struct {
	transA, transB bool
	a, b, c        []float32
	lda, ldb, ldc  int
	m              int
	accumulate     bool

	// The elements of A and B as the kernels see them, and k of these. depth is k of the
	// matrices themselves.
	kind  elements
	k     int
	depth int
}

// phase is the present phase.
type phase struct {
	column, columns int // of C
	panels          int // in columns
	// Blocks of k, and the first one's first step.
	firstDepth, lastDepth, firstStep int
}

// packing is how B is packed in the present phase.
type packing struct {
	packB  bool
	packed []float32 // panels of B, if packB
	buf    []float32 // memory for them
}

// setElements sets the kernels for a level and what they multiply, and k.
func (p *product) setElements(l int32, kind elements, k int) {
	p.depth, p.k, p.kind = k, k, kind
	p.set = &tiles256
	if l == levelAVX512 {
		p.set = &tiles512
	}
	switch kind {
	case elementsPairs:
		p.set, p.k = &tilesBF16, (k+1)/2
	case elementsBF16:
		p.k = (k + 1) &^ 1
	}
	p.own.t.flush = kind == elementsBF16
}

// depths returns the number of blocks into which k steps are cut.
func depths(k int) int { return (k + maxDepth - 1) / maxDepth }

// depthBlock returns the first step and the number of steps of block i of k: all blocks
// are about as deep, and begin at an even step.
func depthBlock(i, k int) (step, steps int) {
	n := depths(k)
	cut := func(i int) int {
		if i == n {
			return k
		}
		return i * k / n &^ 1
	}
	return cut(i), cut(i+1) - cut(i)
}

func (p *product) vectorized(l int32, kind elements, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	if e.empty() {
		e = nil
	}
	if n == 1 && transA && ldc == 1 && e == nil && kind == elementsFloat {
		// C is a row as well as a column: let vectors run along m, where A is
		// contiguous. Products commute, so the chains stay the same.
		transA, transB, m, n, a, lda, b, ldb, ldc = !transB, false, 1, m, b, ldb, a, lda, m
	}
	p.setElements(l, kind, k)
	k = p.k
	p.transA, p.transB = transA, transB
	p.a, p.lda, p.b, p.ldb, p.c, p.ldc = a, lda, b, ldb, c, ldc
	p.m, p.accumulate, p.epilogue = m, accumulate, e
	p.packB = transB || m >= packBFrom || kind != elementsFloat
	width := p.set.columns()
	for j := 0; j < n; j += maxColumns {
		p.column, p.columns = j, min(maxColumns, n-j)
		p.panels = (p.columns + width - 1) / width
		for p.lastDepth = 0; p.lastDepth < depths(k); {
			p.firstDepth = p.lastDepth
			p.firstStep, _ = depthBlock(p.firstDepth, k)
			if !p.packB {
				p.lastDepth = depths(k)
				p.compute()
				continue
			}
			phase := 0 // steps
			for ; p.lastDepth < depths(k); p.lastDepth++ {
				_, steps := depthBlock(p.lastDepth, k)
				if p.lastDepth > p.firstDepth && (phase+steps)*p.panels*width > maxPacked {
					break
				}
				phase += steps
			}
			p.buf = grow(p.buf, p.panels*width*phase)
			p.packed = p.buf
			p.packPanels()
			p.compute()
		}
	}
	p.release()
}

func (p *product) vectorizedPacked(transA bool, m int, a []float32, lda int, b *PackedB, accumulate bool, e *Epilogue, c []float32, ldc int) {
	if e.empty() {
		e = nil
	}
	p.setElements(b.level, b.kind, b.k)
	p.transA = transA
	p.a, p.lda, p.c, p.ldc = a, lda, c, ldc
	p.m, p.accumulate, p.epilogue = m, accumulate, e
	p.packB, p.packed = true, b.data
	p.column, p.columns = 0, b.n
	p.panels = (b.n + p.set.columns() - 1) / p.set.columns()
	p.firstDepth, p.lastDepth, p.firstStep = 0, depths(p.k), 0
	p.compute()
	p.release()
}

// bytes returns the memory for packing.
func (p *product) bytes() int {
	return floatBytes * (cap(p.buf) + cap(p.own.buf))
}

// release drops references to the caller's memory.
func (p *product) release() {
	p.a, p.b, p.c, p.packed, p.epilogue = nil, nil, nil, nil, nil
	p.own.t, p.own.a, p.ahead = tile{}, nil, ahead{}
}

func (b *PackedB) pack(transposed bool, x []float32, ldx int) {
	p := product{operands: operands{transB: transposed, b: x, ldb: ldx}, phase: phase{columns: b.n}}
	p.setElements(b.level, b.kind, b.k)
	p.lastDepth = depths(p.k)
	width := p.set.columns()
	p.panels = (b.n + width - 1) / width
	b.data = grow(b.data, p.panels*width*p.k)
	p.packed = b.data
	p.packPanels()
}

// tileMultiple returns the rows of each of a number of blocks of m rows, as a multiple of
// a tile's height.
func tileMultiple(m, blocks, height int) int {
	return ((m+blocks-1)/blocks + height - 1) / height * height
}

// compute multiplies the blocks of the current phase.
func (p *product) compute() {
	blocks := (p.m + maxRows - 1) / maxRows
	rows := tileMultiple(p.m, blocks, p.set.rows())
	w := &p.own
	for w.row = 0; w.row < p.m; w.row += rows {
		w.rows = min(rows, p.m-w.row)
		for d := p.firstDepth; d < p.lastDepth; d++ {
			step, steps := depthBlock(d, p.k)
			w.setRows(p, step, steps)
			w.setEpilogue(p, d)
			for panel := range p.panels {
				w.panel(p, panel, step, steps)
			}
		}
	}
}

// worker is the state of the loops within a phase.
type worker struct {
	t    tile
	buf  []float32 // packed rows of A
	row  int       // first row of the cells
	rows int
	// The part of the epilogue that the kernels leave to be done for each row of a cell; nil if
	// none.
	finish *Epilogue

	// Element (r, s) of the block's part of op(A) is at a + (r/group)·groupStep +
	// (r%group)·t.aRow + s·t.aCol bytes.
	a         unsafe.Pointer
	group     int
	groupStep uintptr
}

// setRows makes the rows of op(A) available to the kernels.
func (w *worker) setRows(p *product, step, steps int) {
	height := p.set.rows()
	if p.panels >= packAFrom || p.kind != elementsFloat {
		w.pack(p, height, step, steps)
		return
	}
	w.group = height
	if p.transA {
		w.a = at(p.a, step*p.lda+w.row)
		w.t.aRow, w.t.aCol = floatBytes, floatBytes*uintptr(p.lda)
	} else {
		w.a = at(p.a, w.row*p.lda+step)
		w.t.aRow, w.t.aCol = floatBytes*uintptr(p.lda), floatBytes
	}
	w.groupStep = uintptr(height) * w.t.aRow
}

// setEpilogue tells the kernels where chains start and, if they end after block d of k, what to do
// then.
func (w *worker) setEpilogue(p *product, d int) {
	t, e := &w.t, p.epilogue
	t.fromC = p.accumulate || d > 0
	t.relu, t.outRow, w.finish = false, 0, nil
	if e == nil || d < depths(p.k)-1 {
		return
	}
	if e.Activation > ActivationRelu || e.Derivative > ActivationRelu {
		w.finish = e
		return
	}
	t.relu = e.Activation == ActivationRelu
	t.outRow = floatBytes * uintptr(e.OutputStride)
}

// panel computes the tiles of the block's rows in one panel.
func (w *worker) panel(p *product, panel, step, steps int) {
	width := p.set.columns()
	j := panel * width // within the phase
	columns := min(width, p.columns-j)
	t := &w.t
	t.k = steps
	t.cRow = floatBytes * uintptr(p.ldc)
	if p.packB {
		t.b = at(p.packed, p.panelAt(panel, step, steps))
		t.bRow = floatBytes * uintptr(width)
	} else {
		t.b = at(p.b, step*p.ldb+p.column+j)
		t.bRow = floatBytes * uintptr(p.ldb)
	}
	vectors := (columns + p.set.vector - 1) / p.set.vector
	t.lanes = columns - (vectors-1)*p.set.vector
	e := p.epilogue
	inKernel := e != nil && w.finish == nil && step+steps == p.k
	t.bias, t.out = nil, nil
	if inKernel && e.Bias != nil {
		t.bias = at(e.Bias, p.column+j)
	}
	for r, i := 0, 0; r < w.rows; {
		// The highest kernel that fits; it cannot cross a group of rows,
		// since only the last group is cut short.
		for p.set.kernels[i].rows > w.rows-r {
			i++
		}
		kernel := &p.set.kernels[i]
		t.a = unsafe.Add(w.a, uintptr(r/w.group)*w.groupStep+uintptr(r%w.group)*t.aRow)
		t.c = at(p.c, (w.row+r)*p.ldc+p.column+j)
		if inKernel && e.Derivative == ActivationRelu {
			t.out = at(e.Output, (w.row+r)*e.OutputStride+p.column+j)
		}
		p.ahead.next(t, steps)
		if t.lanes == p.set.vector {
			kernel.full[vectors-1](t)
		} else {
			kernel.part[vectors-1](t)
		}
		r += kernel.rows
	}
	if w.finish != nil {
		for i := w.row; i < w.row+w.rows; i++ {
			w.finish.finishRow(i, p.column+j, p.c[i*p.ldc+p.column+j:][:columns])
		}
	}
}

// at returns the address of element i of x.
func at(x []float32, i int) unsafe.Pointer { return unsafe.Pointer(&x[i]) }
