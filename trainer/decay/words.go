package decay

import (
	"math"

	"aibox/trainer/optim"
)

// Devices get the timeline as 64-bit words, integers or float64. First come the number of segments,
// History.Base, and the denominators of rows:
//
//	segments, base, first.From, first.To, first.Epsilon, rest.From, rest.To, rest.Epsilon
//
// then the segments, where a curve is a range of indexes of pieces:
//
//	after, divided (0 or 1),
//	before: alike.first, alike.rest, divided.first, divided.rest,
//	first: lo, hi, rest: lo, hi
//
// and last the pieces:
//
//	after, before, first, slope

// AppendWords appends the words of the timeline, up to the last step for which At was called. They
// change only when their number does.
func (t *Timeline) AppendWords(w []uint64) []uint64 {
	w = append(w, uint64(len(t.segments)), uint64(t.history.Base))
	by := t.by
	if by == nil {
		by = &Denominators{}
	}
	for _, a := range []optim.Accumulators{by.First, by.Rest} {
		w = append(w, uint64(a.From), uint64(a.To), math.Float64bits(a.Epsilon))
	}
	pieces := 0
	pieceRange := func(c *curve) {
		w = append(w, uint64(pieces), uint64(pieces+len(c.pieces)))
		pieces += len(c.pieces)
	}
	for i := range t.segments {
		s := &t.segments[i]
		isDivided := uint64(0)
		if s.divided {
			isDivided = 1
		}
		w = s.before.appendWords(append(w, uint64(s.after), isDivided))
		pieceRange(s.first)
		pieceRange(s.rest)
	}
	for i := range t.segments {
		for _, c := range []*curve{t.segments[i].first, t.segments[i].rest} {
			for _, p := range c.pieces {
				w = append(w, uint64(p.after), math.Float64bits(p.before), math.Float64bits(p.first), math.Float64bits(p.slope))
			}
		}
	}
	return w
}

func (s *sums) appendWords(w []uint64) []uint64 {
	return append(w, math.Float64bits(s.alike.first), math.Float64bits(s.alike.rest), math.Float64bits(s.divided.first), math.Float64bits(s.divided.rest))
}

// MomentWords is the number of words of a moment.
const MomentWords = 5

// AppendWords appends the words of the moment: its step, and the sums up to it in the same order as
// for segments.
func (m *Moment) AppendWords(w []uint64) []uint64 {
	return m.sums.appendWords(append(w, uint64(m.step)))
}

// Numbers returns the factors of the first value and of the others, each as a pair. They multiply
// by v+v*less if less is not 0, and otherwise by v*factor.
func (f *Factors) Numbers() [4]float32 {
	return [4]float32{f.first.less, f.first.factor, f.rest.less, f.rest.factor}
}
