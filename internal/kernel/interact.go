package kernel

// Pairs returns the number of pairs of f vectors.
func Pairs(f int) int { return f * (f - 1) / 2 }

// Interact computes the dot products of all pairs of the f vectors of each example, on the
// caller's goroutine: row i of x (n, f·d) holds the vectors of example i one after another,
// row i of y (n, Pairs(f)) gets the products in the order (1,0), (2,0), (2,1), (3,0), …
// Each product is one chain of fused multiply-adds over ascending components, from +0.
func (s *Scratch) Interact(n, f, d int, x []float32, ldx int, y []float32, ldy int) {
	checkMatrix("Scratch.Interact", "x", n, f*d, len(x), ldx)
	checkMatrix("Scratch.Interact", "y", n, Pairs(f), len(y), ldy)
	if n == 0 || f < 2 {
		return
	}
	// gram[v*f+w] is the product of vectors v and w < v; other elements are undefined.
	s.gram = grow(s.gram, f*f)
	for i := range n {
		vectors, out := x[i*ldx:][:f*d], y[i*ldy:][:Pairs(f)]
		s.dots(f, d, vectors)
		for v := 1; v < f; v++ {
			copy(out[Pairs(v):][:v], s.gram[v*f:])
		}
	}
}

// InteractBackward computes the gradient of x from that of y, on the caller's goroutine: for
// vector v of an example the sum over all vectors w of dy(v,w)·w, where dy(v,v) is zero: one
// chain of fused multiply-adds over ascending w, from +0.
func (s *Scratch) InteractBackward(n, f, d int, x []float32, ldx int, dy []float32, lddy int, dx []float32, lddx int) {
	checkMatrix("Scratch.InteractBackward", "x", n, f*d, len(x), ldx)
	checkMatrix("Scratch.InteractBackward", "dy", n, Pairs(f), len(dy), lddy)
	checkMatrix("Scratch.InteractBackward", "dx", n, f*d, len(dx), lddx)
	if n == 0 || f*d == 0 {
		return
	}
	// The gradients of an example as a symmetric matrix with zeros on its diagonal.
	s.gram = grow(s.gram, f*f)
	clear(s.gram)
	for i := range n {
		vectors, grad, out := x[i*ldx:][:f*d], dy[i*lddy:][:Pairs(f)], dx[i*lddx:][:f*d]
		for v := 1; v < f; v++ {
			row := s.gram[v*f:][:v]
			copy(row, grad[Pairs(v):])
			at := v
			for _, g := range row {
				s.gram[at] = g
				at += f
			}
		}
		s.mix(f, d, vectors, out)
	}
}

// dotsPortable sets the lower triangle of gram to the products of the vectors.
func (s *Scratch) dotsPortable(f, d int, vectors []float32) {
	for v := 1; v < f; v++ {
		a := vectors[v*d:][:d]
		for w := range v {
			sum := float32(0)
			for j, b := range vectors[w*d:][:d] {
				sum = FMA(a[j], b, sum)
			}
			s.gram[v*f+w] = sum
		}
	}
}

// mixPortable sets out to gram·vectors.
func (s *Scratch) mixPortable(f, d int, vectors, out []float32) {
	for v := range f {
		row := out[v*d:][:d]
		clear(row)
		for w := range f {
			axpyPortable(row, vectors[w*d:][:d], s.gram[v*f+w])
		}
	}
}
