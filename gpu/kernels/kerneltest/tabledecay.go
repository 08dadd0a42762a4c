package kerneltest

import (
	"math"
)

// segment is a range of steps, from the one behind after on, in which the logarithms of the factors
// of the first value and of the others follow straight lines.
type segment struct {
	after   int64
	divided bool
	lines   [2]line
}

type line struct{ first, slope float64 } // of the first step, and by how much it grows with each step

func (l line) sum(n int64) float64 {
	return float64(n)*l.first + l.slope*float64(n)*float64(n-1)/2
}

const lastStep = 1500 // of timelines

// sum is the sum of the steps behind after up to step, of those that are divided or not.
func sumOf(segments []segment, step int64, line int, divided bool) float64 {
	sum := 0.0
	for i, s := range segments {
		end := step
		if i+1 < len(segments) {
			end = min(end, segments[i+1].after)
		}
		if end > s.after && s.divided == divided {
			sum += s.lines[line].sum(end - s.after)
		}
	}
	return sum
}

// timeline draws segments, and makes the words of a decay.Timeline with these and those of its
// moment at lastStep. Pieces end where those of package decay do, at steps of a segment whose
// numbers are powers of two less 1.
func (r *rig) timeline(stateWords int) (segments []segment, by [2][2]int, timeline, moment []uint64) {
	bits := math.Float64bits
	for after := int64(0); after < lastStep && len(segments) < 4; after += 100 + r.Int64N(900) {
		s := segment{after: after, divided: r.IntN(2) == 0 && stateWords > 1}
		for i := range s.lines {
			s.lines[i] = line{-0.01 * r.Float64() * float64(r.IntN(2)), -1e-6 * r.Float64()}
		}
		segments = append(segments, s)
	}
	timeline = []uint64{uint64(len(segments)), 0}
	for i := range by {
		from := r.IntN(max(1, stateWords-1))
		by[i] = [2]int{from, from + 1 + r.IntN(max(1, stateWords-1-from))}
		timeline = append(timeline, uint64(by[i][0]), uint64(by[i][1]), bits(tableEpsilon))
	}
	sums := func(w []uint64, step int64) []uint64 {
		for _, divided := range []bool{false, true} {
			w = append(w, bits(sumOf(segments, step, 0, divided)), bits(sumOf(segments, step, 1, divided)))
		}
		return w
	}
	var pieces []uint64
	for _, s := range segments {
		isDivided := uint64(0)
		if s.divided {
			isDivided = 1
		}
		timeline = sums(append(timeline, uint64(s.after), isDivided), s.after)
		for _, l := range s.lines {
			lo := len(pieces) / 4
			for begin := int64(0); begin < lastStep; begin = 2*begin + 1 {
				pieces = append(pieces, uint64(begin), bits(l.sum(begin)), bits(l.first+l.slope*float64(begin)), bits(l.slope))
			}
			timeline = append(timeline, uint64(lo), uint64(len(pieces)/4))
		}
	}
	return segments, by, append(timeline, pieces...), sums([]uint64{lastStep}, lastStep)
}

const tableEpsilon = 0.01

var _ = add("settle rows", func(r *rig) {
	n := 1 + r.IntN(100)
	if r.IntN(3) == 0 {
		n = 3000
	}
	t := r.rows(n)
	for !t.Decays {
		t = r.rows(n)
	}
	segments, by, timeline, moment := r.timeline(t.State)
	factors := r.vector(4*t.TableBatch.Rows, r.garbage)
	r.must(r.k.Settle(r.s, &t.Table, &t.TableBatch, r.longs(moment), r.longs(timeline), factors.region()))
	r.near("Settle", factors, func(_, at int) (float64, float64) {
		i, part := at/4, at%4/2
		log := 0.0
		state := t.Words() - 4 - t.State
		if clock := int64(t.bits(i, state+t.State-1)); clock != 0 {
			last := clock - 1 // step that the row was decayed for
			if clock > lastStep+1 {
				last -= math.MaxUint32
			}
			sum := func(divided bool) float64 {
				return sumOf(segments, lastStep, part, divided) - sumOf(segments, last, part, divided)
			}
			log = sum(false)
			if d := sum(true); d != 0 {
				squares := 0.0
				for k := by[part][0]; k < by[part][1]; k++ {
					squares += float64(t.word(i, state+k))
				}
				log += d / (math.Sqrt(squares/float64(by[part][1]-by[part][0])) + tableEpsilon)
			}
		}
		switch less := log > -0.5; {
		case less && at%2 == 0:
			return math.Expm1(log), math.Abs(math.Expm1(log)) + 1e-9
		case less:
			return 1, 0
		case at%2 == 0:
			return 0, 0
		}
		return math.Exp(log), math.Exp(log) + 1e-30
	})
})
