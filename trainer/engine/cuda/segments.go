package cuda

import "aibox/trainer/ops"

// What a device does in a run of a program is some segments of operations, with nothing between two operations of a
// segment that concerns another stream or device. A segment ends where the devices add up something, in the
// middle of a step of batch normalization, and where the last result is computed.

// segment is operations of one device.
type segment struct {
	pieces  []piece
	sum     sum  // what the devices add up after it
	results bool // after it, all results are there
	probe   bool // its last operations write the probe: see Engine.probe
}

// piece is a step or, of one within which the devices add up something, a part.
type piece struct{ step, part int }

// divide makes the segments of a program for so many devices.
func (x *execution) divide(devices int) {
	x.segments = nil
	last, s := x.lastResult(), segment{}
	end := func() {
		x.segments = append(x.segments, s)
		s = segment{}
	}
	for i := range x.prog.Steps {
		step := &x.prog.Steps[i]
		if step.Kind == ops.KindBagPoolGrad {
			continue // of hostrows.Bags, or of devicerows.Rows
		}
		for _, part := range partsOf(step, devices) {
			s.pieces = append(s.pieces, piece{i, part})
			if sum := x.sumAfter(i, part); devices > 1 && sum.numbers > 0 {
				s.sum = sum
				end()
			}
		}
		if i == last {
			s.results = true
			end()
		}
	}
	if len(s.pieces) > 0 {
		end()
	}
	if devices > 1 && x.prog.Training() {
		x.segments[len(x.segments)-1].probe = true
	}
}

// lastResult is the step after which all results of the program are there.
func (x *execution) lastResult() int {
	p := x.prog
	results := map[int]bool{p.Logits.Buffer: true}
	if p.Training() {
		results[p.Terms.Buffer], results[p.Pooled.Buffer] = true, true
		for _, v := range p.Stats {
			results[v.Buffer] = true
		}
	}
	last := -1
	for i := range p.Steps {
		for _, v := range p.Steps[i].Out {
			if results[v.Buffer] {
				last = i
			}
		}
	}
	return last
}
