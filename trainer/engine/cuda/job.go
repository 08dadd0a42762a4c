package cuda

import (
	"fmt"
	"time"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicememory"
)

// underway is the mini-batches that the devices work on.
type underway struct {
	pinned  pinned
	jobs    [2]job // by slot
	runs    int    // jobs so far; the number of the latest job
	pending *job   // its result was not delivered yet; nil: none
	result  engine.Result
}

// pinned is the host memory for mini-batches. It holds the inputs of the two mini-batches in
// flight, for all devices, and, with rows on the devices, of a third one that is being prepared
// (feed.go); and the results of two.
type pinned struct {
	inputs  []gpu.Pinned
	outputs [2]gpu.Pinned
}

func (p *pinned) bytes() int64 {
	n := int64(0)
	for _, m := range append(p.outputs[:], p.inputs...) {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}

// inputsOf returns the index in inputs of the run with the given number.
func (p *pinned) inputsOf(number int) int { return number % len(p.inputs) }

// job is a mini-batch that the devices work on.
type job struct {
	run
	batch engine.Batch
	done  engine.Done
	step  int64

	captured *captured // nil: operations are enqueued one by one
}

// begin starts a job on x and makes room for it. On an error nothing has changed but memory.
// REQUIRES: the previous job of the slot no longer uses host memory.
func (e *Engine) begin(x *execution, b engine.Batch, done engine.Done, step int64) (*job, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.runs++
	at := e.runs % len(e.jobs)
	j := &e.jobs[at]
	*j = job{run: run{execution: x, number: e.runs, slot: at, parts: j.parts[:0]}, batch: b, done: done, step: step}
	j.parts = e.divide(j.parts, b.N)
	if err := e.makeRoom(j.execution, at, e.pinned.inputsOf(j.number), b.N); err != nil {
		return nil, err
	}
	return j, nil
}

// makeRoom grows the memory of a slot, the pinned memory of its inputs, and the arenas to hold a
// mini-batch of n examples.
func (e *Engine) makeRoom(x *execution, slot, inputs, n int) error {
	most := (n + len(e.replicas) - 1) / len(e.replicas)
	x.layout(most)
	p, r := &e.pinned, e.replicas[0]
	if bytes := x.inputs(n).bytes; !devicememory.Holds(p.inputs[inputs], bytes) {
		if err := devicememory.GrowPinned(r.dev, &p.inputs[inputs], fmt.Sprintf("inputs %d", inputs), bytes, batchMemory("the inputs", n, n)); err != nil {
			return err
		}
	}
	if bytes := x.outputs(n).bytes; !devicememory.Holds(p.outputs[slot], bytes) {
		if err := devicememory.GrowPinned(r.dev, &p.outputs[slot], fmt.Sprintf("outputs %d", slot), bytes, batchMemory("the results", n, n)); err != nil {
			return err
		}
	}
	wanted, enough := x.inputs(most).onDevice, true
	for _, r := range e.replicas {
		enough = enough && devicememory.Holds(r.arena, x.bytes) && devicememory.Holds(r.slots[slot].inputs, wanted)
	}
	if enough {
		return nil
	}
	if err := e.synchronize(); err != nil {
		return err
	}
	if err := e.forget(); err != nil {
		return err
	}
	for _, r := range e.replicas {
		if err := r.grow(&r.arena, "arena", x.bytes, batchMemory("the activations and gradients", most, n)); err != nil {
			return err
		}
		if err := r.grow(&r.slots[slot].inputs, fmt.Sprintf("inputs %d", slot), wanted, batchMemory("the inputs", most, n)); err != nil {
			return err
		}
	}
	return nil
}

// compute enqueues the steps of the program, and the copies of the results.
func (e *Engine) compute(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("compute"))
	other := (j.slot + 1) % len(e.jobs)
	if err := j.onEach(func(r *replica, p part) error {
		j.bind(r, j.slot, p.n)
		if !r.slots[other].ran {
			return nil
		}
		return r.compute.Wait(r.slots[other].downloaded) // its results are copied from the arena
	}); err != nil {
		return err
	}
	if err := e.markBegin(j); err != nil {
		return err
	}
	if e.held != nil {
		if err := e.held.Forward(j.slot, j.onAll(func(r *replica) kernels.Matrix { return j.pooledOn(r) }), e.poolsEarly(j)); err != nil {
			return err
		}
	}
	j.captured = e.captured(j)
	for i := range j.segments {
		s := &j.segments[i]
		if err := e.segment(j, i); err != nil {
			return err
		}
		if s.sum.numbers > 0 {
			if err := j.addUp((*replica).computing, func(r *replica) gpu.Region { return j.sumOn(r, s.sum) }); err != nil {
				return err
			}
		}
		if s.bucket.bytes > 0 {
			if err := e.addUpBucket(j, s.bucket); err != nil {
				return err
			}
		}
		if s.results {
			if err := e.receive(j); err != nil {
				return err
			}
			if e.held != nil && e.group == nil && j.prog.Training() { // concurrent with the rest of the step
				if err := e.updateHeld(j); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// receive records that the results are computed and enqueues their download. In training with rows
// on the devices it enqueues none: enqueueHeld downloads the results behind the update of rows, for
// which the host waits anyway.
func (e *Engine) receive(j *job) error {
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if err := r.compute.Record(s.computed); err != nil || e.held != nil && j.prog.Training() {
			return err
		}
		if err := r.down.Wait(s.computed); err != nil {
			return err
		}
		return e.download(j, r, p)
	})
}

// download enqueues the copies of a device's results. REQUIRES: the stream down has waited for
// them.
func (e *Engine) download(j *job, r *replica, p part) error {
	out, l := e.pinned.outputs[j.slot], j.outputs(j.in.N)
	width := j.net.Fields * j.net.RowDim
	get := func(to int, m kernels.Matrix, rows int) error {
		if rows == 0 {
			return nil
		}
		here := gpu.Region{Memory: out, Offset: to, Width: 4 * m.Columns, Rows: rows, Pitch: 4 * m.Columns}
		return r.down.Copy(here, m.Region(rows))
	}
	logits, n := r.at(j.prog.Logits), p.n
	if j.prog.Training() {
		if terms := r.at(j.prog.Terms); l.terms == l.logits+4*n && follows(terms, logits, n) {
			n *= 2 // one copy gets both
		} else if err := get(l.terms+4*p.first, terms, n); err != nil {
			return err
		}
	}
	if err := get(l.logits+4*p.first, logits, n); err != nil {
		return err
	}
	if j.prog.Training() {
		if e.held == nil {
			if err := get(l.pooled+4*width*p.first, r.at(j.prog.Pooled), p.n); err != nil {
				return err
			}
		}
		to := l.stats
		for _, v := range j.prog.Stats {
			if r == e.replicas[0] { // all have the same
				if err := get(to, r.at(v), 2); err != nil {
					return err
				}
			}
			to += devicememory.Aligned(8 * v.Columns)
		}
	}
	return r.down.Record(r.slots[j.slot].downloaded)
}

// follows reports whether column c lies directly behind the n elements of column other.
func follows(c, other kernels.Matrix, n int) bool {
	return c.Memory == other.Memory && c.Columns == 1 && c.Stride == 1 && other.Columns == 1 && other.Stride == 1 && c.Offset == other.Offset+4*n
}

// finish marks the end of what a job has enqueued.
func (e *Engine) finish(j *job) error {
	if err := e.markEnd(j); err != nil {
		return err
	}
	return j.onEach(func(r *replica, _ part) error {
		s := &r.slots[j.slot]
		s.ran = true
		return r.compute.Record(s.used)
	})
}

// results waits for the results of a job and returns its logits and, in training, its loss.
func (e *Engine) results(j *job) (loss float64, logits []float32, err error) {
	if err := e.wait(j); err != nil {
		return 0, nil, e.fail(err)
	}
	if err := e.measure(j.number); err != nil {
		return 0, nil, e.fail(err)
	}
	if j.prog.Training() {
		if loss, err = e.checkFinite(j); err != nil {
			e.state.Step = j.step - 1 // a later step may be enqueued; the flag keeps it from changing anything
			return 0, nil, e.fail(engine.BatchError(j.step, err))
		}
	}
	if logits, err = numbers(e.pinned.outputs[j.slot], j.outputs(j.batch.N).logits, j.batch.N); err != nil {
		return 0, nil, e.fail(err)
	}
	return loss, logits, nil
}

// pollInterval is how long the host sleeps between two polls of the copies of rows and results.
const pollInterval = 30 * time.Microsecond

// wait waits for the results of a job. Meanwhile it continues copying rows of other passes, since
// each copy needs the host several times.
func (e *Engine) wait(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("wait"))
	for e.held != nil && e.held.Copying() {
		if err := e.held.Progress(); err != nil {
			return err
		}
		done, err := j.downloaded()
		if done || err != nil {
			return err
		}
		time.Sleep(pollInterval)
	}
	return j.onEach(func(r *replica, _ part) error { return r.slots[j.slot].downloaded.Synchronize() })
}

// downloaded reports whether the results of a job are in the memory of the host.
func (j *job) downloaded() (bool, error) {
	for _, r := range j.e.replicas {
		if done, err := r.slots[j.slot].downloaded.Done(); !done || err != nil {
			return false, err
		}
	}
	return true, nil
}
