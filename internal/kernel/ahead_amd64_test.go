package kernel

import (
	"testing"
	"unsafe"
)

// TestAhead checks that the calls of the kernels together prefetch every cache line of the operands of the
// next product, and that the product after that prefetches nothing.
func TestAhead(t *testing.T) {
	r := seeded(t, 31)
	for range 200 {
		m, n, k, steps := 1+r.IntN(40), 1+r.IntN(40), 1+r.IntN(60), 3+r.IntN(60)
		lda, ldb := m+r.IntN(20), n+r.IntN(20)
		a, b := make([]float32, k*lda), make([]float32, k*ldb)
		left := map[uintptr]bool{}
		note := func(x []float32, ldx, columns int) {
			for i := range k {
				for j := range columns {
					left[uintptr(unsafe.Pointer(&x[i*ldx+j]))&^(lineBytes-1)] = true
				}
			}
		}
		note(a, lda, m)
		note(b, ldb, n)
		var s Scratch
		s.Ahead(m, n, k, a, lda, b, ldb)
		w := &s.p.own
		for calls := 0; ; calls++ {
			s.p.ahead.next(&w.t, steps)
			if w.t.aheadRow == 0 {
				break
			}
			if calls > 10000 {
				t.Fatalf("(%d, %d, %d) in calls of %d steps: the calls do not end", m, n, k, steps)
			}
			for i := range (steps - 1) / aheadSteps {
				delete(left, (w.t.ahead+uintptr(i)*w.t.aheadRow)&^(lineBytes-1))
			}
		}
		if len(left) > 0 {
			t.Fatalf("(%d, %d, %d) in calls of %d steps: %d lines are not prefetched", m, n, k, steps, len(left))
		}
		s.Ahead(m, n, k, a, lda, b, ldb)
		s.Gemm(true, false, m, n, k, a, lda, b, ldb, false, nil, make([]float32, m*n), n)
		if s.p.ahead != (ahead{}) && level.Load() > levelPortable {
			t.Fatal("a product left something to be prefetched by the next one")
		}
	}
}
