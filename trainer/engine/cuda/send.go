package cuda

import (
	"aibox/gpu"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
)

// poolGrain is the number of examples whose bags one thread pools at a time.
const poolGrain = 128

// sendDense sends what does not depend on rows.
func (e *Engine) sendDense(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("send"))
	in, l := e.slots[j.slot].inputs, j.inputs(j.in.N)
	clock, err := in.Writing(l.clock, 8)
	if err != nil {
		return err
	}
	gpu.As[int64](clock)[0] = j.step
	if len(e.constants) > 0 && j.prog.Training() {
		words, err := room(in, l.constants, len(e.constants))
		if err != nil {
			return err
		}
		copy(words, e.constants)
	}
	for _, v := range []struct {
		at   int
		data []float32
	}{{l.dense, j.in.Dense}, {l.labels, j.in.Labels}, {l.weights, j.in.Weights}} {
		if len(v.data) == 0 {
			continue
		}
		to, err := room(in, v.at, len(v.data))
		if err != nil {
			return err
		}
		copy(to, v.data)
	}
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if s.ran { // the last mini-batch of the slot may still be at work
			if err := r.up.Wait(s.used); err != nil {
				return err
			}
		}
		if err := r.up.Copy(gpu.Part(s.inputs, l.clock, 8), gpu.Part(in, l.clock, 8)); err != nil {
			return err
		}
		there := j.inputs(p.n)
		if n := 4 * len(e.constants); n > 0 && j.prog.Training() {
			if err := r.up.Copy(gpu.Part(s.inputs, there.constants, n), gpu.Part(in, l.constants, n)); err != nil {
				return err
			}
		}
		if err := send(r, j, there.dense, l.dense, p, len(j.in.Dense)/j.in.N); err != nil {
			return err
		}
		if err := send(r, j, there.labels, l.labels, p, len(j.in.Labels)/j.in.N); err != nil {
			return err
		}
		return send(r, j, there.weights, l.weights, p, len(j.in.Weights)/j.in.N)
	})
}

// send copies the examples of a device to it, columns numbers of each.
func send(r *replica, j *job, to, from int, p part, columns int) error {
	bytes := 4 * columns * p.n
	if bytes == 0 {
		return nil
	}
	return r.up.Copy(gpu.Part(r.slots[j.slot].inputs, to, bytes), gpu.Part(j.e.slots[j.slot].inputs, from+4*columns*p.first, bytes))
}

// gather returns the values of the rows of a mini-batch.
func (e *Engine) gather(b engine.Batch, of func(*reader.Batch) []float32) []float32 {
	defer e.ranges.EndRange(e.ranges.StartRange("gather"))
	return of(b.Batch)
}

// sendPooled pools the bags, sends the result, and lets the devices begin when all has arrived.
func (e *Engine) sendPooled(j *job) error {
	l, width := j.inputs(j.in.N), j.net.Fields*j.net.RowDim
	if err := e.poolBags(j, width); err != nil {
		return err
	}
	defer e.ranges.EndRange(e.ranges.StartRange("send"))
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if err := send(r, j, j.inputs(p.n).pooled, l.pooled, p, width); err != nil {
			return err
		}
		if err := r.up.Record(s.uploaded); err != nil {
			return err
		}
		return r.compute.Wait(s.uploaded)
	})
}

// poolBags pools the bags of a job, width numbers of each example.
func (e *Engine) poolBags(j *job, width int) error {
	defer e.ranges.EndRange(e.ranges.StartRange("pool"))
	pooled, err := room(e.slots[j.slot].inputs, j.inputs(j.in.N).pooled, j.in.N*width)
	if err != nil {
		return err
	}
	e.pool = pooling{&j.bags, pooled, j.in.Rows, width, j.in.N}
	kernel.Parallel((j.in.N+poolGrain-1)/poolGrain, 1, e.poolTask)
	e.pool = pooling{}
	return nil
}

// pooling is what poolTask works on.
type pooling struct {
	bags      *hostrows.Bags
	out, rows []float32
	width, n  int
}

// runPool pools blocks lo to hi of examples.
func (e *Engine) runPool(lo, hi int) {
	p := &e.pool
	first := lo * poolGrain
	p.bags.Pool(first, min(hi*poolGrain, p.n)-first, p.out[first*p.width:], p.width, p.rows)
}
