package cuda

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
)

// slot is the memory of the host for one mini-batch, with the inputs for all devices and
// their results.
type slot struct{ inputs, outputs gpu.Pinned }

func (s *slot) bytes() int64 {
	n := int64(0)
	for _, m := range []gpu.Pinned{s.inputs, s.outputs} {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}

// job is a mini-batch that the devices work on.
type job struct {
	run
	batch engine.Batch
	done  engine.Done
	step  int64
}

// poolGrain is the number of examples whose bags one thread pools at a time.
const poolGrain = 128

// begin starts a job on x: it makes room, and sends what does not depend on rows. The caller has made
// sure that the slot's last job is done with the memory of the host. Nothing has changed but
// memory if there is an error.
func (e *Engine) begin(x *execution, b engine.Batch, done engine.Done, step int64) (*job, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.runs++
	at := e.runs % len(e.slots)
	j := &e.jobs[at]
	*j = job{run: run{execution: x, number: e.runs, slot: at, parts: j.parts[:0], total: b.Total}, batch: b, done: done, step: step}
	if j.total == 0 {
		j.total = b.N
	}
	devices := len(e.replicas)
	for d := range devices {
		lo, hi := b.N*d/devices, b.N*(d+1)/devices
		j.parts = append(j.parts, part{lo, hi - lo})
	}
	if err := e.makeRoom(j); err != nil {
		return nil, err
	}
	return j, nil
}

// makeRoom sees to it that the memory of a job's slot, and the arenas, are large enough.
func (e *Engine) makeRoom(j *job) error {
	n, most := j.batch.N, 0
	for _, p := range j.parts {
		most = max(most, p.n)
	}
	j.layout(most)
	s := &e.slots[j.slot]
	r := e.replicas[0]
	if bytes := j.inputs(n).bytes; !holds(s.inputs, bytes) {
		if err := r.growPinned(&s.inputs, fmt.Sprintf("inputs %d", j.slot), bytes, batchMemory("the inputs", n, n)); err != nil {
			return err
		}
	}
	if bytes := j.outputs(n).bytes; !holds(s.outputs, bytes) {
		if err := r.growPinned(&s.outputs, fmt.Sprintf("outputs %d", j.slot), bytes, batchMemory("the results", n, n)); err != nil {
			return err
		}
	}
	for _, r := range e.replicas {
		inputs := &r.slots[j.slot].inputs
		wanted := j.inputs(most).bytes
		if holds(r.arena, j.bytes) && holds(*inputs, wanted) {
			continue
		}
		if err := r.dev.Synchronize(); err != nil {
			return err
		}
		if err := r.grow(&r.arena, "arena", j.bytes, batchMemory("the activations and gradients", most, n)); err != nil {
			return err
		}
		if err := r.grow(inputs, fmt.Sprintf("inputs %d", j.slot), wanted, batchMemory("the inputs", most, n)); err != nil {
			return err
		}
	}
	return nil
}

// sendDense sends what does not depend on rows.
func (e *Engine) sendDense(j *job) error {
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

// sendPooled pools the bags, sends the result, and lets the devices begin when all has arrived.
func (e *Engine) sendPooled(j *job) error {
	in, l := e.slots[j.slot].inputs, j.inputs(j.in.N)
	width := j.net.Fields * j.net.RowDim
	pooled, err := room(in, l.pooled, j.in.N*width)
	if err != nil {
		return err
	}
	e.pool = pooling{&j.bags, pooled, j.in.Rows, width, j.in.N}
	kernel.Parallel((j.in.N+poolGrain-1)/poolGrain, 1, e.poolTask)
	e.pool = pooling{}
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

// compute enqueues the steps of the program, and the copies of the results.
func (e *Engine) compute(j *job) error {
	other := (j.slot + 1) % len(e.slots)
	if err := j.onEach(func(r *replica, p part) error {
		j.bind(r, j.slot, p.n)
		if !r.slots[other].ran {
			return nil
		}
		return r.compute.Wait(r.slots[other].downloaded) // the arena still had results
	}); err != nil {
		return err
	}
	for i := range j.prog.Steps {
		if err := j.take(i); err != nil {
			return err
		}
		if i == j.ready {
			if err := e.receive(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive enqueues the copies of the results to the host.
func (e *Engine) receive(j *job) error {
	out, l := e.slots[j.slot].outputs, j.outputs(j.in.N)
	width := j.net.Fields * j.net.RowDim
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if err := r.compute.Record(s.computed); err != nil {
			return err
		}
		if err := r.down.Wait(s.computed); err != nil {
			return err
		}
		get := func(to int, m kernels.Matrix, rows int) error {
			if rows == 0 {
				return nil
			}
			here := gpu.Region{Memory: out, Offset: to, Width: 4 * m.Columns, Rows: rows, Pitch: 4 * m.Columns}
			return r.down.Copy(here, m.Region(rows))
		}
		if err := get(l.logits+4*p.first, r.at(j.prog.Logits), p.n); err != nil {
			return err
		}
		if j.prog.Training() {
			if err := get(l.terms+4*p.first, r.at(j.prog.Terms), p.n); err != nil {
				return err
			}
			if err := get(l.pooled+4*width*p.first, r.at(j.prog.Pooled), p.n); err != nil {
				return err
			}
			to := l.stats
			for _, v := range j.prog.Stats {
				if r == e.replicas[0] { // all have the same
					if err := get(to, r.at(v), 2); err != nil {
						return err
					}
				}
				to += aligned(8 * v.Columns)
			}
		}
		return r.down.Record(s.downloaded)
	})
}

// finish marks the end of what a job has enqueued.
func (e *Engine) finish(j *job) error {
	return j.onEach(func(r *replica, _ part) error {
		s := &r.slots[j.slot]
		s.ran = true
		return r.compute.Record(s.used)
	})
}

// wait waits for the results of a job.
func (e *Engine) wait(j *job) error {
	return j.onEach(func(r *replica, _ part) error { return r.slots[j.slot].downloaded.Synchronize() })
}
