package cpu

import (
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Every element of a gradient is in one rectangle, for any size and number of threads, and no
// rectangle is larger than the cache allows.
func TestRectangles(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		m, n := 1+r.IntN(900), 1+r.IntN(1500)
		s := &program.Step{In: []program.Value{{Columns: m}, {Columns: n}}}
		s.Kind = ops.KindMatMul
		if r.IntN(4) == 0 {
			s.Kind, s.In, m = ops.KindColumnSum, []program.Value{{Columns: n}}, 1
		}
		threads := 1 + r.IntN(20)
		rows, columns := rectangleSize(m*n, threads)
		seen := make([]int, m*n)
		for _, p := range cutResult(nil, s, rows, columns) {
			if p.rows > mostRows+kernel.UnitRows || p.columns > mostColumns+kernel.UnitColumns {
				t.Errorf("(%d, %d) on %d threads: a rectangle of (%d, %d)", m, n, threads, p.rows, p.columns)
			}
			for i := p.row; i < p.row+p.rows; i++ {
				for j := p.column; j < p.column+p.columns; j++ {
					seen[i*n+j]++
				}
			}
		}
		for i, times := range seen {
			if times != 1 {
				t.Fatalf("(%d, %d) on %d threads: element (%d, %d) is in %d rectangles", m, n, threads, i/n, i%n, times)
			}
		}
	}
}
