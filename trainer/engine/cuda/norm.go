package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Batch normalization needs sums over the examples of all devices in the middle of a run. Each such
// step has two vectors in the arena for them. It is divided into parts, between which the vectors
// are all-reduced.

// sum is a range of the numbers that are all-reduced.
type sum struct{ at, numbers int }

// sumsOf is how many float32 a step needs for its sums, rounded up to devicememory.Align.
func sumsOf(s *program.Step) int {
	switch s.Kind {
	case ops.KindBatchStats, ops.KindBatchNormInput:
		return devicememory.Aligned(4*2*s.Out[0].Columns) / 4
	}
	return 0
}

// partsOf returns the parts of a step that each of the given number of devices takes.
func partsOf(s *program.Step, devices int) []int {
	switch {
	case s.Kind == ops.KindBatchStats:
		return []int{0, 1, 2}
	case s.Kind == ops.KindBatchNormInput && devices > 1:
		return []int{0, 1}
	case s.Kind == ops.KindBatchNormInput:
		return []int{1}
	}
	return []int{0}
}

// sumAfter is what several devices all-reduce after a piece.
func (x *execution) sumAfter(at piece) sum {
	s, first := &x.prog.Steps[at.step], x.sums[at.step]
	switch {
	case s.Kind == ops.KindBatchStats && at.part < 2:
		columns := s.In[0].Columns
		return sum{first + at.part*columns, columns}
	case s.Kind == ops.KindBatchNormInput && at.part == 0:
		return sum{first, 2 * s.Out[0].Columns}
	}
	return sum{}
}

// sumOn is where a device has a sum.
func (u *run) sumOn(r *replica, s sum) gpu.Region {
	return gpu.Part(r.arena, u.sumsAt+4*s.at, 4*s.numbers)
}

// vector is vector j of the sums of step i.
func (u *run) vector(r *replica, i, j, columns int) kernels.Matrix {
	return kernels.Matrix{Memory: r.arena, Offset: u.sumsAt + 4*(u.sums[i]+j*columns), Columns: columns, Stride: columns}
}

// batchStats computes mean and variance over the examples of all devices: part 0 sums the values,
// part 1 the squares of their deviations from the mean.
func (u *run) batchStats(r *replica, p part, at piece) error {
	s := &u.prog.Steps[at.step]
	x, columns := r.at(s.In[0]), s.In[0].Columns
	values, squares := u.vector(r, at.step, 0, columns), u.vector(r, at.step, 1, columns)
	switch at.part {
	case 0:
		return r.kernels.ColumnSum(r.compute, values, x, p.n, u.workOf(r, at.step, p.n))
	case 1:
		return r.kernels.NormSquares(r.compute, squares, x, values, p.n, u.in.N, u.workOf(r, at.step, p.n))
	}
	return r.kernels.NormStatistics(r.compute, r.at(s.Out[0]), values, squares, u.in.N)
}

// normInput is the derivative of a normalization. It depends on the gradients of gamma and beta
// over the examples of all devices. Several devices all-reduce copies of these, since the gradients
// themselves are all-reduced with all others at the end.
func (u *run) normInput(r *replica, p part, at piece) error {
	s := &u.prog.Steps[at.step]
	gamma, beta := r.at(s.In[3]), r.at(s.In[4])
	if u.e.group != nil {
		columns := s.Out[0].Columns
		gammas, betas := u.vector(r, at.step, 0, columns), u.vector(r, at.step, 1, columns)
		if at.part == 0 {
			if err := r.kernels.Copy(r.compute, gammas, gamma, 1); err != nil {
				return err
			}
			return r.kernels.Copy(r.compute, betas, beta, 1)
		}
		gamma, beta = gammas, betas
	}
	return r.kernels.NormInput(r.compute, r.at(s.Out[0]), r.at(s.In[0]), r.at(s.In[1]), r.at(s.In[2]),
		gamma, beta, r.at(s.In[5]), p.n, u.in.N)
}

// onEach calls do for each device.
func (u *run) onEach(do func(r *replica, p part) error) error {
	for d, r := range u.e.replicas {
		if err := do(r, u.parts[d]); err != nil {
			return err
		}
	}
	return nil
}

// addUp all-reduces an array of each device, in the given stream of each.
func (u *run) addUp(stream func(r *replica) gpu.Stream, array func(r *replica) gpu.Region) error {
	e := u.e
	if e.group == nil {
		return nil
	}
	defer e.ranges.EndRange(e.ranges.StartRange("all-reduce"))
	e.streams, e.arrays = e.streams[:0], e.arrays[:0]
	for _, r := range e.replicas {
		e.streams, e.arrays = append(e.streams, uncounted(stream(r))), append(e.arrays, array(r))
	}
	if err := u.markSum(0, stream); err != nil {
		return err
	}
	if err := e.group.AllReduce(e.streams, e.arrays); err != nil {
		return err
	}
	// Each device sums one n-th of the array. It sends every other device that device's part, and
	// then the sum of its own part.
	n := len(e.replicas)
	for _, r := range e.replicas {
		r.counters.counts[between].Add(int64(2 * (n - 1) * e.arrays[0].Bytes() / n))
	}
	return u.markSum(1, stream)
}
