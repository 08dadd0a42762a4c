package kernel

import (
	"math"
	"sync"
)

const (
	// threadWork is how many multiply-adds justify one more thread: waking it takes about 10
	// microseconds.
	threadWork = 512 << 10
	// perThread is how many rectangles each thread should get, so that an interrupted thread leaves
	// some to the others.
	perThread = 2
	// packWork is the cost of packing an element, in multiply-adds.
	packWork = 16
)

// UnitRows and UnitColumns are the rows and columns of C that the kernels of AVX-512 compute at a
// time: parts of a product are best cut at multiples of them.
const (
	UnitRows    = 14
	UnitColumns = 32
)

// shared is a matrix product computed by several threads: C is cut into rectangles, each of which
// one thread computes as a separate product. The threads thus share no packed operands, and wait
// for one another only at the end.
type shared struct {
	bf16           bool
	transA, transB bool
	m, n, k        int
	a, b, c        []float32
	lda, ldb, ldc  int
	accumulate     bool
	epilogue       Epilogue

	down, across int // rectangles above and beside one another
}

var sharedProducts = sync.Pool{New: func() any { return new(shared) }}

// gemmOn computes a product on at most the given number of threads.
func gemmOn(threads int, function string, bf16, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	checkB(function, transB, n, k, b, ldb)
	if !checkProduct(function, transA, m, n, k, a, lda, accumulate, e, c, ldc) {
		return
	}
	threads = max(1, min(threads, m*n*k/threadWork))
	s := sharedProducts.Get().(*shared)
	*s = shared{
		bf16: bf16, transA: transA, transB: transB, m: m, n: n, k: k,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, accumulate: accumulate,
	}
	if e != nil {
		s.epilogue = *e
	}
	s.cut(threads)
	parallelOn(threads, s.down*s.across, 1, s)
	*s = shared{}
	sharedProducts.Put(s)
}

// cut chooses the rectangles: at least perThread for each thread, if C is large enough, such that
// the last thread ends as early as possible.
func (s *shared) cut(threads int) {
	s.down, s.across = 1, 1
	if threads == 1 {
		return
	}
	tall, broad := units(s.m, UnitRows), units(s.n, UnitColumns)
	fewest := min(threads*perThread, tall*broad)
	least := math.MaxInt
	for down := 1; down <= min(fewest, tall); down++ {
		for across := (fewest + down - 1) / down; across <= min(2*fewest/down, broad); across++ {
			m, n := units(tall, down)*UnitRows, units(broad, across)*UnitColumns
			rounds := units(down*across, threads)
			if cost := rounds * (m*n + packWork*(m+n)); cost < least {
				least, s.down, s.across = cost, down, across
			}
		}
	}
}

// units returns how many units of rows or columns there are.
func units(size, unit int) int { return (size + unit - 1) / unit }

// part returns where part i of a number of parts begins and how long it is.
func part(i, parts, size, unit int) (first, n int) {
	cut := func(i int) int { return min(i*units(size, unit)/parts*unit, size) }
	return cut(i), cut(i+1) - cut(i)
}

// run computes rectangles lo to hi.
func (s *shared) run(lo, hi int) {
	w := rectangles.Get().(*rectangle)
	for i := lo; i < hi; i++ {
		row, m := part(i/s.across, s.down, s.m, UnitRows)
		column, n := part(i%s.across, s.across, s.n, UnitColumns)
		a, b := row*s.lda, column
		if s.transA {
			a = row
		}
		if s.transB {
			b = column * s.ldb
		}
		w.epilogue = s.epilogue.of(row, column, n)
		w.p.gemm("Gemm", s.bf16, s.transA, s.transB, m, n, s.k, s.a[a:], s.lda, s.b[b:], s.ldb,
			s.accumulate, &w.epilogue, s.c[row*s.ldc+column:], s.ldc)
	}
	w.epilogue = Epilogue{}
	rectangles.Put(w)
}

// rectangle has the memory for computing one rectangle.
type rectangle struct {
	p        product
	epilogue Epilogue
}

var rectangles = sync.Pool{New: func() any { return new(rectangle) }}
