package decay

import (
	"math"
	"sort"

	"aibox/internal/fixmath"
	"aibox/trainer/optim"
)

// curve is the sum of log(1 - rate*schedule) over the steps of one segment, as a function of the
// number of steps.
type curve struct {
	rate     float64
	schedule optim.Schedule
	pieces   []piece
	end      int64   // number of steps that the pieces cover
	total    float64 // sum over those
}

// piece is a range of steps in which the logarithms of the factors lie on a straight line.
type piece struct {
	after  int64   // the step before its first
	before float64 // sum over all earlier steps
	first  float64 // logarithm of the first step's factor
	slope  float64 // increase of the logarithm with each step
}

// tolerance is how far the logarithm of a factor may be from the straight line of its piece,
// relative to the rate.
const tolerance = 1e-8

// step returns the logarithm of the factor of step k, 1 for the first one of the segment.
func (c *curve) step(k int64) float64 {
	return fixmath.Log1p(-float64(c.rate * c.schedule.Factor(k)))
}

// extend makes the pieces cover at least n steps. They end at powers of two, so they do not depend
// on when extend is called.
func (c *curve) extend(n int64) {
	for c.end < n {
		c.divide(c.end, 2*c.end+1)
	}
}

// divide adds pieces for the steps after a, up to b.
func (c *curve) divide(a, b int64) {
	first, last := c.step(a+1), c.step(b)
	p := piece{after: a, before: c.total, first: first}
	if b-a > 1 {
		p.slope = (last - first) / float64(b-a-1)
	}
	if !c.straight(p, b) {
		middle := a + (b-a)/2
		c.divide(a, middle)
		c.divide(middle, b)
		return
	}
	c.pieces = append(c.pieces, p)
	c.end, c.total = b, p.sum(b)
}

// straight reports whether p describes the steps up to b.
func (c *curve) straight(p piece, b int64) bool {
	n := b - p.after
	if n <= 2 {
		return true
	}
	for _, i := range [...]int64{n / 4, n / 2, n - n/4} {
		if k := max(i, 1); math.Abs(c.step(p.after+1+k)-(p.first+float64(p.slope*float64(k)))) > tolerance*c.rate {
			return false
		}
	}
	return true
}

// sum returns the sum over the steps up to k, which lies in the piece.
func (p *piece) sum(k int64) float64 {
	n := float64(k - p.after)
	return p.before + (float64(n*p.first) + float64(float64(p.slope*n)*(n-1)/2))
}

// sum returns the sum over the first n steps, which the pieces must cover.
func (c *curve) sum(n int64) float64 {
	if n <= 0 {
		return 0
	}
	i := sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].after >= n }) - 1
	return c.pieces[i].sum(n)
}
