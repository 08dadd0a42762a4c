package cuda

import (
	"slices"

	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// What a device does in a run of a program is some segments of operations, with nothing between two
// operations of a segment that concerns another stream or device. A segment ends where the devices
// add up something, in the middle of a step of batch normalization, where a bucket of gradients is
// complete, and where the last result is computed.

// segment is operations of one device.
type segment struct {
	pieces  []piece
	sum     sum    // what the devices add up after it
	results bool   // after it, all results are there
	bucket  bucket // of gradients that are complete after it; not those of the last bucket
	probe   bool   // its last operations write the probe: see Engine.probe
}

// piece is a step or, of one within which the devices add up something, a part.
type piece struct{ step, part int }

// division is the segments of a program.
type division struct {
	pieces   []piece
	segments []segment
	// Bags of a mini-batch may be pooled behind the results of the one before: the rest of that
	// does not use their memory.
	poolsEarly bool
}

// divide makes pieces of the program for so many devices.
func (x *execution) divide(devices int) {
	for i := range x.prog.Steps {
		s := &x.prog.Steps[i]
		if s.Kind == ops.KindBagPoolGrad || s.Kind == ops.KindBagPool && x.e.rowsOnDevice {
			continue // of hostrows.Bags, or of devicerows.Rows
		}
		if x.by[i] != i {
			continue
		}
		for _, part := range partsOf(s, devices) {
			x.pieces = append(x.pieces, piece{i, part})
		}
	}
}

// join makes segments of the pieces. Buckets are those that devices add up before the end.
func (x *execution) join(devices int, buckets []bucket) {
	last, s := x.lastResult(), segment{}
	for i, at := range x.pieces {
		end := i+1 == len(x.pieces)
		s.pieces = append(s.pieces, at)
		s.results = at.step == last && (end || x.pieces[i+1].step != last)
		if devices > 1 {
			s.sum, s.probe = x.sumAfter(at), end && x.prog.Training()
			if len(buckets) > 0 && buckets[0].after == i {
				s.bucket, buckets = buckets[0], buckets[1:]
			}
		}
		if end || s.results || s.sum.numbers > 0 || s.bucket.bytes > 0 {
			x.segments = append(x.segments, s)
			s = segment{}
		}
	}
	x.poolsEarly = x.pool != nil && x.isFreeBehind(x.pool.Out[0])
}

// isFreeBehind tells whether nothing behind the results of a run uses the memory of a value.
func (x *execution) isFreeBehind(v program.Value) bool {
	b, behind := &x.prog.Buffers[v.Buffer], false
	for i := range x.segments {
		for _, at := range x.segments[i].pieces {
			s := &x.prog.Steps[at.step]
			for _, u := range slices.Concat(s.In, s.Out) {
				other := &x.prog.Buffers[u.Buffer]
				shares := u.Buffer != v.Buffer && x.isTile(b) && x.isTile(other) && other.Slot == b.Slot
				if behind && (shares || u.Overlaps(v)) {
					return false
				}
			}
		}
		behind = behind || x.segments[i].results
	}
	return true
}

// isTile tells whether a buffer lies in a slot.
func (x *execution) isTile(b *program.Buffer) bool {
	return b.Source == program.Inner && b.Rows == program.Examples && b.Scope == program.Tile
}

// lastResult is the step after whose operation all results of the program are there.
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
				last = max(last, x.by[i])
			}
		}
	}
	return last
}
