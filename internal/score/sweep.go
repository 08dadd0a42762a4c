package score

import (
	"math"
	"math/bits"
)

// Counts computes an AUC from the number of positives and negatives at each
// distinct score, given in ascending order of score. It is exact for up to
// 2^62 examples of each class: the area is an integer of 128 bits, because
// positives times negatives leaves 64 bits at some billions of examples. The
// zero value is ready.
type Counts struct {
	pos, neg       uint64
	areaHi, areaLo uint64 // twice the number of pairs in order, a tie counting 1
}

// Add appends the next higher score.
func (c *Counts) Add(pos, neg uint64) {
	hi, lo := bits.Mul64(pos, 2*c.neg+neg)
	var carry uint64
	c.areaLo, carry = bits.Add64(c.areaLo, lo, 0)
	c.areaHi += hi + carry
	c.pos += pos
	c.neg += neg
}

// AUC is NaN unless there are both classes.
func (c *Counts) AUC() float64 {
	if c.pos == 0 || c.neg == 0 {
		return math.NaN()
	}
	hi, lo := bits.Mul64(c.pos, 2*c.neg)
	return float128(c.areaHi, c.areaLo) / float128(hi, lo)
}

func float128(hi, lo uint64) float64 { return float64(float64(hi)*0x1p64) + float64(lo) }

// weighted is Counts for weights that are not whole numbers.
type weighted struct {
	pos, neg  Sum
	area, tie Sum // pairs in order, a tie counting 1/2; half the pairs that tie
}

func (w *weighted) add(pos, neg float64) {
	below := w.neg.Value()
	half := float64(pos * neg / 2)
	w.area.Add(float64(pos * below))
	w.area.Add(half)
	w.tie.Add(half)
	w.pos.Add(pos)
	w.neg.Add(neg)
}

func (w *weighted) auc() float64 {
	p, n := w.pos.Value(), w.neg.Value()
	if !(p > 0 && n > 0) {
		return math.NaN()
	}
	return min(w.area.Value()/p/n, 1)
}

// bound is half the share of pairs that tie, which is how far the AUC could be off if the
// scores of these pairs in fact differ.
func (w *weighted) bound() float64 {
	return w.tie.Value() / w.pos.Value() / w.neg.Value()
}
