package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/internal/fixmath"
)

var _ = add(emulated.Kernels{
	"table_settle": {Run: func(b *emulated.Block) {
		out, moment, timeline := emulated.Slice[float32](b, 0), emulated.Slice[uint64](b, 3), emulated.Slice[uint64](b, 4)
		rowThreads(b, b.Int32(5), func(i int) {
			row := tableRow(b, 1, 2, i, b.Int32(6))
			settle(out[4*i:][:4], row[b.Int32(7):][:b.Int32(8)], moment, timeline)
		})
	}},
})

// factors are what the values of a row are multiplied by: see decay.Factors.Numbers.
type factors []float32

// apply multiplies value k.
func (f factors) apply(k int, v float32) float32 {
	less, factor := f[0], f[1]
	if k > 0 {
		less, factor = f[2], f[3]
	}
	switch {
	case less != 0:
		return v + float32(v*less)
	case factor != 1:
		return float32(v * factor)
	}
	return v
}

const (
	clockPeriod   = math.MaxUint32
	timelineWords = 8  // before the segments
	segmentWords  = 10 // of each segment
	pieceWords    = 4  // of each piece
)

// settle computes the factors of a row with that state up to a moment: decay.Moment.Settle.
func settle(out, state []float32, moment, timeline []uint64) {
	copy(out, []float32{0, 1, 0, 1})
	before, now := math.Float32bits(state[len(state)-1]), uint32((int64(moment[0])-int64(timeline[1]))%clockPeriod)+1
	if before == 0 || before == now {
		return
	}
	age := int64(now) - int64(before)
	if age < 0 {
		age += clockPeriod
	}
	then := sumsAt(timeline, int64(moment[0])-age)
	var s [4]float64 // alike.first, alike.rest, divided.first, divided.rest
	for i := range s {
		s[i] = math.Float64frombits(moment[1+i]) - then[i]
	}
	if s[2] != 0 || s[3] != 0 {
		s[0] += divided(s[2], state, timeline[2:5])
		s[1] += divided(s[3], state, timeline[5:8])
	}
	setFactor(out[:2], s[0])
	setFactor(out[2:], s[1])
}

// sumsAt are the sums of all steps up to one.
func sumsAt(timeline []uint64, step int64) (sums [4]float64) {
	segments := timeline[timelineWords:][:segmentWords*int(timeline[0])]
	pieces := timeline[timelineWords+len(segments):]
	at := len(segments) - segmentWords
	for at >= 0 && int64(segments[at]) >= step {
		at -= segmentWords
	}
	if at < 0 {
		return sums
	}
	s := segments[at:][:segmentWords]
	for i := range sums {
		sums[i] = math.Float64frombits(s[2+i])
	}
	own := sums[2*s[1]:]
	own[0] += curveSum(pieces[pieceWords*s[6]:pieceWords*s[7]], step-int64(s[0]))
	own[1] += curveSum(pieces[pieceWords*s[8]:pieceWords*s[9]], step-int64(s[0]))
	return sums
}

// curveSum is the sum of the first n steps of a curve, n > 0.
func curveSum(pieces []uint64, n int64) float64 {
	lo, hi := 0, len(pieces)/pieceWords // the last piece that begins before step n is one of [lo, hi)
	for hi-lo > 1 {
		if middle := (lo + hi) / 2; int64(pieces[pieceWords*middle]) < n {
			lo = middle
		} else {
			hi = middle
		}
	}
	p := pieces[pieceWords*lo:]
	before, first, slope := math.Float64frombits(p[1]), math.Float64frombits(p[2]), math.Float64frombits(p[3])
	k := float64(n - int64(p[0]))
	return before + (float64(k*first) + float64(float64(slope*k)*(k-1)/2))
}

// divided is the logarithm of a row's factor, which its accumulators divide. Without any gradient
// yet, the row stays as it is.
func divided(log float64, state []float32, by []uint64) float64 {
	if log == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range state[by[0]:by[1]] {
		sum += float64(x)
	}
	if sum == 0 {
		return 0
	}
	return log / (math.Sqrt(sum/float64(by[1]-by[0])) + math.Float64frombits(by[2]))
}

// setFactor sets the factor of a logarithm.
func setFactor(out []float32, log float64) {
	if log > -0.5 {
		out[0] = float32(fixmath.Expm1(log))
	} else {
		out[1] = float32(fixmath.Exp(log))
	}
}
