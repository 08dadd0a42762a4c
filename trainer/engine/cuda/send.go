package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
)

const (
	// poolGrain is the number of examples whose bags one thread pools at a time: with 26 fields,
	// about 20 µs of work.
	poolGrain = 32
	// A mini-batch is sent in at most sentBlocks blocks of at least fewestSent examples: a copy
	// should take longer than enqueueing it.
	sentBlocks = 4
	fewestSent = 1024
)

// sending is the state of the host while it sends a mini-batch.
type sending struct {
	copier   kernel.Copier
	pool     pooling
	poolTask func(lo, hi int) // runPool, bound once
}

// sendDense sends the inputs that do not depend on rows.
func (e *Engine) sendDense(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("send"))
	in, l := e.inputsOf(j), j.inputs(j.in.N)
	end := l.clock + 8
	if j.prog.Training() {
		end = l.constants + 4*len(e.constants)
	}
	switch {
	case len(j.in.Weights) > 0:
		end = l.weights + 4*len(j.in.Weights)
	case len(j.in.Labels) > 0:
		end = l.labels + 4*len(j.in.Labels)
	case len(j.in.Dense) > 0:
		end = l.dense + 4*len(j.in.Dense)
	}
	is, err := e.isPrepared(j, l)
	if err != nil {
		return err
	}
	to, err := in.Writing(0, end) // with the gaps
	if err != nil {
		return err
	}
	if !is {
		l.copyTo(&e.copier, to, &j.in)
		e.copier.Copy()
	}
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
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if s.ran { // the previous mini-batch of the slot may still use its inputs
			if err := r.up.Wait(s.used); err != nil {
				return err
			}
		}
		if len(e.replicas) == 1 { // host and device have the same layout
			if err := r.up.Copy(gpu.Part(s.inputs, 0, end), gpu.Part(in, 0, end)); err != nil {
				return err
			}
			return sentDense(r, j, p.n)
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
		if err := sentDense(r, j, p.n); err != nil {
			return err
		}
		if err := send(r, j, there.labels, l.labels, p, len(j.in.Labels)/j.in.N); err != nil {
			return err
		}
		return send(r, j, there.weights, l.weights, p, len(j.in.Weights)/j.in.N)
	})
}

// sentDense rounds the dense features of a device to bfloat16 behind their copy, so that no product
// has to wait for that. With rows on the devices, arrived does so in the stream of rows instead: a
// kernel between two copies would delay the second one.
func sentDense(r *replica, j *job, n int) error {
	if r.rows != nil {
		return nil
	}
	return roundDense(r, j, n, r.up)
}

// roundDense rounds the dense features of a device to bfloat16, if products need that.
func roundDense(r *replica, j *job, n int, stream gpu.Stream) error {
	if j.dense < 0 {
		return nil
	}
	inputs, columns, l := r.slots[j.slot].inputs, j.net.Dense, j.inputs(n)
	to := kernels.Half{Memory: inputs, Offset: l.rounded, Columns: j.halfs[j.dense].stride, Stride: j.halfs[j.dense].stride}
	return r.kernels.ToBF16(stream, to, kernels.Matrix{Memory: inputs, Offset: l.dense, Columns: columns, Stride: columns}, n)
}

// inputsOf returns the pinned memory of the inputs of a job.
func (e *Engine) inputsOf(j *job) gpu.Pinned { return e.pinned.inputs[e.pinned.inputsOf(j.number)] }

// send copies columns float32 of each example in p to a device. Offsets are in bytes: to is where
// the first example of p goes on the device, from is where the first of the mini-batch is on the
// host.
func send(r *replica, j *job, to, from int, p part, columns int) error {
	bytes := 4 * columns * p.n
	if bytes == 0 {
		return nil
	}
	return r.up.Copy(gpu.Part(r.slots[j.slot].inputs, to, bytes), gpu.Part(j.e.inputsOf(j), from+4*columns*p.first, bytes))
}

// gather returns the values of the rows of a mini-batch, as the function of returns them.
func (e *Engine) gather(b engine.Batch, of func(*reader.Batch) []float32) []float32 {
	defer e.ranges.EndRange(e.ranges.StartRange("gather"))
	return of(b.Batch)
}

// sendPooled pools the bags, sends the result, and makes the devices wait for all uploads. While
// one block of examples is being copied, the next one is pooled.
func (e *Engine) sendPooled(j *job) error {
	l, width := j.inputs(j.in.N), j.net.Fields*j.net.RowDim
	most := max(fewestSent, (j.in.N+sentBlocks-1)/sentBlocks)
	for first := 0; first < j.in.N; first += most {
		block := part{first, min(most, j.in.N-first)}
		if err := e.poolBags(j, block, width); err != nil {
			return err
		}
		if err := e.sendBlock(j, block, l.pooled, width); err != nil {
			return err
		}
	}
	return e.arrived(j)
}

// sendBlock sends the pooled rows of a block of examples to the devices that have these examples.
func (e *Engine) sendBlock(j *job, block part, from, width int) error {
	defer e.ranges.EndRange(e.ranges.StartRange("send"))
	return j.onEach(func(r *replica, p part) error {
		first, end := max(p.first, block.first), min(p.first+p.n, block.first+block.n)
		if first >= end {
			return nil
		}
		return send(r, j, j.inputs(p.n).pooled+4*width*(first-p.first), from, part{first, end - first}, width)
	})
}

// poolBags pools the bags of a block of examples, width float32 per example, into pinned memory.
func (e *Engine) poolBags(j *job, block part, width int) error {
	defer e.ranges.EndRange(e.ranges.StartRange("pool"))
	pooled, err := room(e.inputsOf(j), j.inputs(j.in.N).pooled+4*width*block.first, block.n*width)
	if err != nil {
		return err
	}
	e.pool = pooling{&j.bags, pooled, j.in.Rows, width, block}
	kernel.Parallel((block.n+poolGrain-1)/poolGrain, 1, e.poolTask)
	e.pool = pooling{}
	return nil
}

// pooling is the arguments of poolTask.
type pooling struct {
	bags      *hostrows.Bags
	out, rows []float32
	width     int
	block     part
}

// runPool pools grains lo to hi-1 of the block.
func (s *sending) runPool(lo, hi int) {
	p := &s.pool
	lo, hi = lo*poolGrain, min(hi*poolGrain, p.block.n)
	p.bags.Pool(p.block.first+lo, hi-lo, p.out[lo*p.width:], p.width, p.rows)
}
