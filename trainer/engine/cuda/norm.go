package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Batch normalization needs sums over the examples of all devices in the middle of a run. They lie in
// the arena, two vectors for each step that needs some.

// sumsOf is how many numbers a step needs for its sums, which begin at a multiple of 64.
func sumsOf(s *program.Step) int {
	switch s.Kind {
	case ops.KindBatchStats, ops.KindBatchNormInput:
		return 2 * roundColumns(s.Out[0].Columns)
	}
	return 0
}

func roundColumns(n int) int { return aligned(4*n) / 4 }

// sum is vector j of the sums of step i.
func (u *run) sum(r *replica, i, j, columns int) kernels.Matrix {
	return kernels.Matrix{
		Memory: r.arena, Offset: u.sumsAt + 4*(u.sums[i]+j*roundColumns(columns)), Columns: columns, Stride: columns,
	}
}

// batchStats computes mean and variance over the examples of all devices, from the sums of the values and
// then of the squares of their deviations from the mean.
func (u *run) batchStats(i int, s *program.Step) error {
	columns := s.In[0].Columns
	if err := u.onEach(func(r *replica, p part) error {
		return r.kernels.ColumnSum(r.compute, u.sum(r, i, 0, columns), r.at(s.In[0]), p.n, u.workOf(r))
	}); err != nil {
		return err
	}
	if err := u.addUp(func(r *replica) gpu.Region { return u.sum(r, i, 0, columns).Region(1) }); err != nil {
		return err
	}
	if err := u.onEach(func(r *replica, p part) error {
		return r.kernels.NormSquares(r.compute, u.sum(r, i, 1, columns), r.at(s.In[0]), u.sum(r, i, 0, columns), p.n, u.in.N, u.workOf(r))
	}); err != nil {
		return err
	}
	if err := u.addUp(func(r *replica) gpu.Region { return u.sum(r, i, 1, columns).Region(1) }); err != nil {
		return err
	}
	return u.onEach(func(r *replica, _ part) error {
		return r.kernels.NormStatistics(r.compute, r.at(s.Out[0]), u.sum(r, i, 0, columns), u.sum(r, i, 1, columns), u.in.N)
	})
}

// normInput is the derivative of a normalization, which depends on the gradients of gamma and beta over the
// examples of all devices. They are added up in copies: the gradients themselves are, with all
// others, at the end.
func (u *run) normInput(i int, s *program.Step) error {
	columns := s.Out[0].Columns
	gradient := func(r *replica, j int) kernels.Matrix { return r.at(s.In[3+j]) }
	if u.e.group != nil {
		for j := range 2 {
			if err := u.onEach(func(r *replica, _ part) error {
				return r.kernels.Copy(r.compute, u.sum(r, i, j, columns), gradient(r, j), 1)
			}); err != nil {
				return err
			}
			if err := u.addUp(func(r *replica) gpu.Region { return u.sum(r, i, j, columns).Region(1) }); err != nil {
				return err
			}
		}
		gradient = func(r *replica, j int) kernels.Matrix { return u.sum(r, i, j, columns) }
	}
	return u.onEach(func(r *replica, p part) error {
		return r.kernels.NormInput(r.compute, r.at(s.Out[0]), r.at(s.In[0]), r.at(s.In[1]), r.at(s.In[2]),
			gradient(r, 0), gradient(r, 1), r.at(s.In[5]), p.n, u.in.N)
	})
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

// addUp adds up an array over all devices.
func (u *run) addUp(array func(r *replica) gpu.Region) error {
	e := u.e
	if e.group == nil {
		return nil
	}
	defer e.ranges.EndRange(e.ranges.StartRange("all-reduce"))
	e.streams, e.arrays = e.streams[:0], e.arrays[:0]
	for _, r := range e.replicas {
		e.streams, e.arrays = append(e.streams, uncounted(r.compute)), append(e.arrays, array(r))
	}
	if err := u.markSum(0); err != nil {
		return err
	}
	if err := e.group.AllReduce(e.streams, e.arrays); err != nil {
		return err
	}
	// Each device sums up a part. It sends each other one that one's part, and the sum of its own.
	n := len(e.replicas)
	for _, r := range e.replicas {
		r.counters.counts[between].Add(int64(2 * (n - 1) * e.arrays[0].Bytes() / n))
	}
	return u.markSum(1)
}
