package kernel

import "sync"

// elementGrain is how many elements a range must have to be worth a goroutine if an element
// takes about a nanosecond.
const elementGrain = 16 << 10

// ColSum sets out[j] to the sum over i of x[i,j], the gradient of a bias. x is
// (m, n) with rows ldx elements apart. Each column is one chain of additions
// over ascending rows, starting from +0, or from out[j] if accumulate.
func ColSum(m, n int, x []float32, ldx int, accumulate bool, out []float32) {
	checkMatrix("ColSum", "x", m, n, len(x), ldx)
	sameLength("ColSum", n, len(out))
	if !accumulate {
		clear(out)
	}
	if m == 0 || n == 0 {
		return
	}
	t := colSumTasks.Get().(*colSumTask)
	*t = colSumTask{m, x, ldx, out}
	// Ranges of columns that start at multiples of a cache line.
	grain := max(lanes, elementGrain/m)
	parallel(n, (grain+lanes-1)&^(lanes-1), t)
	*t = colSumTask{}
	colSumTasks.Put(t)
}

type colSumTask struct {
	m   int
	x   []float32
	ldx int
	out []float32
}

var colSumTasks = sync.Pool{New: func() any { return new(colSumTask) }}

func (t *colSumTask) run(lo, hi int) {
	out := t.out[lo:hi]
	for i := range t.m {
		addRow(out, t.x[i*t.ldx+lo:][:hi-lo])
	}
}
