package cuda

import (
	"fmt"

	"aibox/gpu"
)

const (
	// sampleFirst is the first training step that is measured. In the steps before it, memory is
	// allocated and the driver loads kernels.
	sampleFirst = 3
	// sampleEvery is the distance between sampled steps. It is coprime to the usual number of
	// mini-batches in a pass, a power of two: else samples would always fall on the same places.
	sampleEvery = 31
)

// sampling says which training step is measured. Events in the compute streams, outside graphs,
// mark the end of the previous step and the beginning and end of the sampled one. Further events
// mark its all-reduces, in their streams. Nothing waits for these events: they are read once the
// host has waited for a later operation.
type sampling struct {
	steps   int  // training steps so far
	next    int  // the step that is sampled next
	before  int  // number of the latest run whose end was marked because the next one may be sampled
	run     int  // number of the sampled run
	pending bool // the run has ended, and its times were not read yet
	sums    int  // sums of the sampled run so far
}

// marks are events of a sampled step on a device.
type marks struct {
	before gpu.Event      // the previous step is done
	began  gpu.Event      // all inputs have arrived
	sums   [][2]gpu.Event // around each sum over the devices
	ended  gpu.Event
}

// mark records an event on all devices.
func (e *Engine) mark(name string, of func(*marks) *gpu.Event) error {
	for _, r := range e.replicas {
		event := of(&r.marks)
		if *event == nil {
			var err error
			if *event, err = r.dev.NewEvent(name); err != nil {
				return err
			}
		}
		if err := r.compute.Record(*event); err != nil {
			return err
		}
	}
	return nil
}

// markBegin marks the beginning of a step. REQUIRES: the compute streams have waited for its
// inputs.
func (e *Engine) markBegin(j *job) error {
	s := &e.sample
	if !j.prog.Training() {
		return nil
	}
	s.steps++
	if s.pending || s.before != j.number-1 || s.before == 0 {
		return nil
	}
	s.run, s.sums = j.number, 0
	return e.mark("began", func(m *marks) *gpu.Event { return &m.began })
}

// markEnd marks the end of a step if it, or possibly the next one, is sampled.
func (e *Engine) markEnd(j *job) error {
	s := &e.sample
	switch {
	case !j.prog.Training():
	case s.run == j.number:
		s.next, s.pending = s.steps+sampleEvery, true
		return e.mark("ended", func(m *marks) *gpu.Event { return &m.ended })
	case !s.pending && s.steps+1 >= max(s.next, sampleFirst):
		s.before = j.number
		return e.mark("before", func(m *marks) *gpu.Event { return &m.before })
	}
	return nil
}

// markSum marks the beginning (end = 0) or the end (end = 1) of an all-reduce, in its stream.
func (u *run) markSum(end int, stream func(r *replica) gpu.Stream) error {
	s := &u.e.sample
	if s.run != u.number {
		return nil
	}
	for _, r := range u.e.replicas {
		if s.sums == len(r.marks.sums) {
			r.marks.sums = append(r.marks.sums, [2]gpu.Event{})
		}
		mark := &r.marks.sums[s.sums][end]
		if *mark == nil {
			var err error
			if *mark, err = r.dev.NewEvent(fmt.Sprintf("sum %d, end %d", s.sums, end)); err != nil {
				return err
			}
		}
		if err := stream(r).Record(*mark); err != nil {
			return err
		}
	}
	s.sums += end
	return nil
}

// measure reads the times of the sampled step if run is a later one. REQUIRES: the host has waited
// for the results of run.
func (e *Engine) measure(run int) error {
	s := &e.sample
	if !s.pending || run <= s.run {
		return nil
	}
	s.pending = false
	for _, r := range e.replicas {
		m, c := &r.marks, r.counters
		wall, err := m.ended.Since(m.before)
		if err != nil {
			return err
		}
		idle, err := m.began.Since(m.before)
		if err != nil {
			return err
		}
		sum := int64(0)
		for _, mark := range m.sums[:s.sums] {
			took, err := mark[1].Since(mark[0])
			if err != nil {
				return err
			}
			sum += int64(took)
		}
		wall = max(wall, 0) // device clocks are inexact
		c.sampled.Add(1)
		c.wall.Add(int64(wall))
		c.busy.Add(int64(min(max(wall-idle, 0), wall)))
		c.sums.Add(sum)
	}
	return nil
}
