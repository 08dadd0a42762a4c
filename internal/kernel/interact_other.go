//go:build !amd64

package kernel

func (s *Scratch) dots(f, d int, vectors []float32) { s.dotsPortable(f, d, vectors) }

func (s *Scratch) mix(f, d int, vectors, out []float32) {
	s.mixPortable(f, d, vectors, out)
}
