package kernel

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced returns memory for so many floats between two pages that nobody may touch.
func fenced(t *testing.T, floats int) []float32 {
	page := unix.Getpagesize()
	size := (4*floats + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	for _, edge := range [][]byte{m[:page], m[page+size:]} {
		if err := unix.Mprotect(edge, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&m[page])), size/4)
}

// TestFences: at every level, no function reads or writes before or behind its slices, which would
// end the test, and each gives the bits of the portable one.
func TestFences(t *testing.T) {
	r := seeded(t, 30)
	var memory [4][]float32
	for i := range memory {
		memory[i] = fenced(t, 1<<18)
	}
	try := func(what string, do func(x [][]float32), x ...[]float32) {
		t.Helper()
		var want [][]float32
		for i := range x {
			want = append(want, slices.Clone(x[i]))
		}
		atLevel(t, "portable", func() { do(want) })
		for _, level := range Levels() {
			for side := range 2 {
				var got [][]float32
				for i := range x {
					at := side * (len(memory[i]) - len(x[i]))
					got = append(got, memory[i][at:][:len(x[i]):len(x[i])])
					copy(got[i], x[i])
				}
				run := func() { atLevel(t, level, func() { do(got) }) }
				if withPairs != nil {
					withPairs(r.IntN(2) == 0, run)
				} else {
					run()
				}
				for i := range got {
					wantSame(t, fmt.Sprintf("%s at %s: slice %d", what, level, i), want[i], got[i])
				}
			}
		}
	}
	fill := func(n int) []float32 { return anything(r, make([]float32, n)) }
	for n := range 70 {
		for _, e := range elementwise {
			try(fmt.Sprint(e.name, " of ", n), func(x [][]float32) { e.run(x[0], x[1], x[2]) }, fill(n), fill(n), fill(n))
		}
		for _, f := range functions {
			if f.slice != nil {
				try(fmt.Sprint(f.name, " of ", n), func(x [][]float32) { f.slice(x[0], x[1]) }, fill(n), fill(n))
			}
		}
		for _, o := range optimizers {
			try(fmt.Sprint(o.name, " of ", n), func(x [][]float32) { o.step(x[0], x[1], x[2], x[3]) }, fill(n), fill(n), fill(n), fill(n))
		}
		try(fmt.Sprint("reductions of ", n), func(x [][]float32) { x[2][0], x[2][1] = Sum(x[0]), Dot(x[0], x[1]) }, fill(n), fill(n), fill(2))
	}
	var s Scratch
	var packed PackedB
	for range rounds(200) {
		m, n, k := 1+r.IntN(50), 1+r.IntN(70), 1+r.IntN(90)
		if r.IntN(8) == 0 {
			m, k = m+256, k+384 // B is packed, and k is cut
		}
		transA, transB, accumulate := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
		matrix := func(transposed bool, rows, cols int) ([]float32, int) {
			if transposed {
				rows, cols = cols, rows
			}
			stride := cols + r.IntN(3)
			return fill((rows-1)*stride + cols), stride
		}
		a, lda := matrix(transA, m, k)
		b, ldb := matrix(transB, k, n)
		c, ldc := matrix(false, m, n)
		out, ldo := matrix(false, m, n)
		e := func(x [][]float32) *Epilogue {
			return &Epilogue{Derivative: Activation(m % 3), Output: x[3], OutputStride: ldo}
		}
		what := fmt.Sprintf("(%d, %d, %d) %v %v %v", m, n, k, transA, transB, accumulate)
		try("Gemm "+what, func(x [][]float32) {
			if transA && !transB {
				s.Ahead(m, n, k, x[0], lda, x[1], ldb) // which may prefetch beyond the fences
			}
			s.Gemm(transA, transB, m, n, k, x[0], lda, x[1], ldb, accumulate, e(x), x[2], ldc)
		}, a, b, c, out)
		try("GemmBF16 "+what, func(x [][]float32) {
			s.GemmBF16(transA, transB, m, n, k, x[0], lda, x[1], ldb, accumulate, e(x), x[2], ldc)
		}, a, b, c, out)
		try("GemmPacked "+what, func(x [][]float32) {
			packed.Pack(transB, k, n, x[1], ldb)
			s.GemmPacked(transA, m, x[0], lda, &packed, accumulate, &Epilogue{Bias: x[3], Activation: ActivationRelu}, x[2], ldc)
		}, a, b, c, fill(n))
		x, ldx := matrix(false, 2, n*m)
		y, ldy := matrix(false, 2, Pairs(n))
		dx, lddx := matrix(false, 2, n*m)
		if n*m > 2000 {
			continue
		}
		try(fmt.Sprintf("Interact of %d vectors of %d", n, m), func(z [][]float32) {
			s.Interact(2, n, m, z[0], ldx, z[1], ldy)
			s.InteractBackward(2, n, m, z[0], ldx, z[1], ldy, z[2], lddx)
		}, x, y, dx)
	}
}
