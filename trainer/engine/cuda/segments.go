package cuda

import (
	"slices"

	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// A run of a program on a device is a sequence of segments. Within a segment, no operation involves
// another stream or device. A segment ends where the devices all-reduce something: in the middle of
// a batch normalization step, or where a bucket of gradients is complete. It also ends where the
// last result is computed.

// segment is operations of one device.
type segment struct {
	pieces  []piece
	sum     sum    // what the devices all-reduce after it
	results bool   // it computes the last result
	bucket  bucket // gradients that are complete after it, except the last bucket
	probe   bool   // its last operations write the probe: see Engine.probe
}

// piece is a part of a step: see partsOf.
type piece struct{ step, part int }

// division is the segments of a program.
type division struct {
	pieces   []piece
	segments []segment
	// The bags of a mini-batch may be pooled once the results of the previous one are computed: no
	// operation after the results uses the memory of the bags.
	poolsEarly bool
}

// divide divides the program into pieces, for the given number of devices.
func (x *execution) divide(devices int) {
	for i := range x.prog.Steps {
		s := &x.prog.Steps[i]
		if s.Kind == ops.KindBagPoolGrad || s.Kind == ops.KindBagPool && x.e.rowsOnDevice {
			continue // done by hostrows.Bags or devicerows.Rows
		}
		if x.by[i] != i {
			continue
		}
		for _, part := range partsOf(s, devices) {
			x.pieces = append(x.pieces, piece{i, part})
		}
	}
}

// join makes segments of the pieces. buckets has all buckets but the last.
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

// isFreeBehind reports whether no segment after the results of a run uses the memory of a value.
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

// isTile reports whether a buffer lies in a slot of the program.
func (x *execution) isTile(b *program.Buffer) bool {
	return b.Source == program.Inner && b.Rows == program.Examples && b.Scope == program.Tile
}

// lastResult is the step whose operation computes the last result of the program.
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
