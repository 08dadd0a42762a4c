package cuda

import (
	"aibox/gpu"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/program"
)

// With rows on the devices, copying the inputs of a large mini-batch into pinned memory may take
// the host as long as its step takes a device. So while the host enqueues a step and waits for the
// previous one, a worker (devicerows.Rows.Prepare) copies the inputs of the next one.

// prepared is the dense inputs of the next mini-batch, in pinned memory.
type prepared struct {
	batch    *reader.Batch // nil: none was prepared
	training bool
	layout   inputLayout
	copier   kernel.Copier
	copy     func() // copier.CopyBeside, bound once
}

// following returns the mini-batch of the pass that comes after b; nil if there is none.
func (h *heldRows) following(b *reader.Batch) *reader.Batch {
	for i := range len(h.batches) - 1 {
		if &h.batches[i] == b {
			return &h.batches[i+1]
		}
	}
	return nil
}

// prepareNext lets a worker copy the inputs of the mini-batch after that of j. A mini-batch that
// was not checked when it was made is not touched before its own call. REQUIRES: all inputs of j
// were sent.
func (e *Engine) prepareNext(j *job) error {
	next := e.following(j.batch.Batch)
	if next == nil || !next.Made() {
		return nil
	}
	l, to := j.inputs(next.N), e.pinned.inputs[e.pinned.inputsOf(j.number+1)]
	if !devicememory.Holds(to, l.bytes) {
		return nil
	}
	bytes, err := to.Writing(0, l.bytes)
	if err != nil {
		return err
	}
	p := &e.prepared
	p.batch, p.training, p.layout = next, j.prog.Training(), l
	in := program.Inputs{Dense: next.Dense}
	if p.training {
		in.Labels, in.Weights = next.Labels, next.Weights
	}
	l.copyTo(&p.copier, bytes, &in)
	e.aheadParts = e.divide(e.aheadParts[:0], next.N)
	begun, err := e.held.Prepare(next, e.sharesOf(e.aheadParts), p.training, p.copy)
	if !begun {
		p.batch = nil
		p.copy()
	}
	return err
}

// isPrepared waits for prepared inputs and reports whether they are the dense inputs of j.
func (e *Engine) isPrepared(j *job, l inputLayout) (bool, error) {
	if e.held == nil {
		return false, nil
	}
	p := &e.prepared
	is := p.batch == j.batch.Batch && p.training == j.prog.Training() && p.layout == l
	p.batch = nil
	return is, e.held.Prepared()
}

// copyTo adds to c the copies of a mini-batch's inputs to pinned memory; absent ones are skipped.
func (l *inputLayout) copyTo(c *kernel.Copier, to []byte, in *program.Inputs) {
	for _, v := range [...]struct {
		at   int
		data []float32
	}{{l.dense, in.Dense}, {l.labels, in.Labels}, {l.weights, in.Weights}} {
		if len(v.data) > 0 {
			kernel.CopyTo(c, gpu.As[float32](to[v.at:][:4*len(v.data)]), v.data)
		}
	}
}
