package cuda

import (
	"errors"
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/panics"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicerows"
)

// With rows on the devices (package devicerows), the host sends the numbers of a mini-batch's rows
// and gets back the loss terms and the logits. The result of Train is delivered by the next call,
// as that of Infer is: the host prepares a mini-batch while the devices work on the previous one.

// heldRows is the rows of passes on the devices.
type heldRows struct {
	rowsOnDevice bool             // see Options
	held         *devicerows.Rows // nil: the rows are on the host
	trained      bool             // a training step of the pass was enqueued
	shares       []devicerows.Share

	batches    []reader.Batch // of the pass
	prepared   prepared
	aheadParts []part
}

// holdRows opens the streams for rows on the devices and creates held.
func (e *Engine) holdRows() (err error) {
	var devices []devicerows.Device
	for _, r := range e.replicas {
		d := devicerows.Device{Device: r.dev, Kernels: r.kernels, Compute: r.compute, Up: r.up, Flag: r.flag(), NoRoom: r.noRoom}
		if r.rows, err = r.newStream("rows"); err != nil {
			return err
		}
		d.Rows = r.rows
		if d.RowsUp, err = r.newStream("rows up"); err != nil {
			return err
		}
		if d.RowsDown, err = r.newStream("rows down"); err != nil {
			return err
		}
		devices = append(devices, d)
	}
	e.held, err = devicerows.New(e.Config, e.state, devices)
	return err
}

// beginHeld begins a pass with rows on the devices. It first reserves memory for the mini-batches
// of the pass, so that rows cannot take it.
func (e *Engine) beginHeld(p engine.Pass) error {
	defer e.ranges.EndRange(e.ranges.StartRange("bring rows"))
	most, x := 0, &e.infer
	for i := range p.Batches {
		most = max(most, p.Batches[i].N)
		if len(p.Batches[i].RowStarts) > 0 {
			x = &e.train
		}
	}
	if x == &e.train {
		e.prepareUpdates(e.state.Step+1, 1) // the inputs include the constants
	}
	err := e.makeAllRoom(x, most)
	if errors.Is(err, gpu.OutOfMemory) {
		if err := e.held.MakeWay(); err != nil {
			return err
		}
		err = e.makeAllRoom(x, most)
	}
	if err != nil {
		return err
	}
	e.batches = p.Batches
	return e.held.Begin(p)
}

// makeAllRoom calls makeRoom for all slots and all pinned inputs.
func (e *Engine) makeAllRoom(x *execution, n int) error {
	for inputs := range e.pinned.inputs {
		if err := e.makeRoom(x, inputs%len(e.jobs), inputs, n); err != nil {
			return err
		}
	}
	return nil
}

// trainHeld is Train with rows on the devices.
func (e *Engine) trainHeld(b engine.Batch, done engine.Done) error {
	j, scale, err := e.beginTraining(b, done)
	if err != nil {
		return err
	}
	sending := e.ranges.StartRange("send")
	err = e.held.SendTraining(j.slot, b.Batch, e.sharesOf(j.parts), j.step, scale)
	if err == nil {
		err = e.prepareNext(j)
	}
	e.ranges.EndRange(sending)
	if err != nil {
		return e.fail(err)
	}
	if err := e.enqueueHeld(j); err != nil {
		return e.fail(err)
	}
	e.state.Step, e.trained = j.step, true
	if err := e.held.Progress(); err != nil {
		return e.fail(err)
	}
	before := e.pending
	e.pending = j
	return e.deliverJob(before)
}

// Announce implements engine.Engine.
func (e *Engine) Announce(next engine.Pass) (err error) {
	if e.held == nil || e.err != nil {
		return e.err
	}
	defer e.leave(&err)
	defer panics.Catch("the engine", &err)
	if err := e.held.Announce(next); err != nil {
		return e.fail(err)
	}
	return nil
}

// Withdraw implements engine.Engine. An error comes with the next call.
func (e *Engine) Withdraw() {
	if e.held == nil {
		return
	}
	if e.err == nil {
		err := e.held.Withdraw()
		if err == nil {
			return
		}
		_ = e.fail(err)
	}
	e.held.Abort() // also after a failed Export, which leaves the pass open
}

// endHeld ends a pass whose rows are on the devices, and reports whether they may stay there for
// the next one.
func (e *Engine) endHeld() (stay bool, err error) {
	if e.err != nil {
		e.held.Abort()
		return false, nil
	}
	fetching := e.ranges.StartRange("fetch rows")
	defer e.ranges.EndRange(fetching)
	if err := e.held.End(e.trained && !e.stopped); err != nil {
		e.held.Abort()
		return false, e.fail(err)
	}
	return e.held.Announced() && !e.stopped, nil
}

// copyRowsToHost copies rows that are still on the devices to the host.
func (e *Engine) copyRowsToHost() error {
	defer e.ranges.EndRange(e.ranges.StartRange("fetch rows"))
	if err := e.held.CopyToHost(); err != nil {
		e.held.Abort()
		return e.fail(err)
	}
	return e.synchronize() // what still fails must do so before anything is committed
}

// sharesOf is the examples of each device.
func (h *heldRows) sharesOf(parts []part) []devicerows.Share {
	h.shares = h.shares[:0]
	for _, p := range parts {
		h.shares = append(h.shares, devicerows.Share{First: p.first, N: p.n})
	}
	return h.shares
}

// sendBags is sendPooled for inference with rows on the devices.
func (e *Engine) sendBags(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("send"))
	if err := e.held.Send(j.slot, j.batch.Batch, e.sharesOf(j.parts)); err != nil {
		return err
	}
	if err := e.prepareNext(j); err != nil {
		return err
	}
	return e.arrived(j)
}

// arrived makes the devices wait for the uploads of a job before they compute.
func (e *Engine) arrived(j *job) error {
	return j.onEach(func(r *replica, p part) error {
		s := &r.slots[j.slot]
		if err := r.up.Record(s.uploaded); err != nil {
			return err
		}
		if err := r.compute.Wait(s.uploaded); err != nil || r.rows == nil {
			return err
		}
		if err := r.rows.Wait(s.uploaded); err != nil {
			return err
		}
		return roundDense(r, j, p.n, r.rows)
	})
}

// enqueueHeld enqueues a step of training.
func (e *Engine) enqueueHeld(j *job) error {
	if err := e.arrived(j); err != nil {
		return err
	}
	if err := e.computeStep(j); err != nil {
		return err
	}
	if e.group != nil { // the flags are final only now
		if err := j.onEach(func(r *replica, _ part) error { return r.compute.Record(r.slots[j.slot].computed) }); err != nil {
			return err
		}
		if err := e.updateHeld(j); err != nil {
			return err
		}
	}
	if err := e.finish(j); err != nil {
		return err
	}
	for d, r := range e.replicas {
		if err := e.held.Receive(j.slot, d, r.down); err != nil {
			return err
		}
		if err := e.download(j, r, j.parts[d]); err != nil {
			return err
		}
	}
	return nil
}

// updateHeld enqueues the update of rows on the devices.
func (e *Engine) updateHeld(j *job) error {
	defer e.ranges.EndRange(e.ranges.StartRange("update rows"))
	e.events = e.events[:0]
	for _, r := range e.replicas {
		e.events = append(e.events, r.slots[j.slot].computed)
	}
	return e.held.Update(j.slot, j.onAll(func(r *replica) kernels.Matrix { return r.at(j.prog.Pooled) }), e.events)
}

// onAll returns one matrix per device. The slice is valid until the next call.
func (u *run) onAll(of func(r *replica) kernels.Matrix) []kernels.Matrix {
	e := u.e
	e.matrices = e.matrices[:0]
	for _, r := range e.replicas {
		e.matrices = append(e.matrices, of(r))
	}
	return e.matrices
}

// pooledOn is where a device pools its bags before the first segment of a run: in the program's own
// buffer. No other step of the run writes there before the bags are used, since the program would
// pool them in its first step (package program). No operation of an earlier run uses the buffer any
// more either. Unless bags are pooled early, the segments of earlier runs are in the same stream.
// That stream has also waited until the earlier results are downloaded from the arena (compute),
// and until the other devices have copied the gradients of pooled bags from it
// (devicerows.Rows.Forward).
func (u *run) pooledOn(r *replica) kernels.Matrix { return r.at(u.pool.Out[0]) }

// poolsEarly reports whether the bags of a job may be pooled while the device still computes the
// part of the previous job that comes after its results. The previous job must be a training step
// of the same size, so that both have the same arena layout.
func (e *Engine) poolsEarly(j *job) bool {
	before := e.pending
	return e.group == nil && j.poolsEarly && j.prog.Training() && before != nil && before.execution == j.execution && before.batch.N == j.batch.N
}

// checkRows returns an error if the update of rows on the devices has made a value infinite or NaN.
// REQUIRES: the host has waited for the job.
func (e *Engine) checkRows(j *job) error {
	key, is, err := e.held.Overflowed(j.slot)
	if err != nil {
		return e.fail(err)
	}
	if is {
		e.state.Step = j.step
		return e.fail(engine.UpdateError(fmt.Sprintf("the row of key %x", key), j.step))
	}
	return nil
}

// RowLimit returns the limit on the rows of a pass: the rows of two passes must fit the free memory
// of the devices beside mini-batches of at most the given number of examples. It is nil if rows are
// not on the devices.
func (e *Engine) RowLimit(examples int) (*devicerows.Limit, error) {
	if e.held == nil {
		return nil, nil
	}
	share := (examples + len(e.replicas) - 1) / len(e.replicas)
	for _, x := range []*execution{&e.train, &e.infer} {
		x.layout(share)
	}
	network := int64(max(e.train.bytes, e.infer.bytes) + len(e.jobs)*e.train.inputs(share).onDevice)
	least := int64(math.MaxInt64)
	for _, r := range e.replicas {
		free, _, err := r.dev.FreeMemory()
		if err != nil {
			return nil, e.fail(err)
		}
		sharing := int64(0) // replicas on the physical device
		for _, o := range e.replicas {
			if o.dev.Number() == r.dev.Number() {
				sharing++
			}
		}
		least = min(least, (free-free/freeShare)/sharing)
	}
	return e.held.Limit(least - network), nil
}

// freeShare: RowLimit leaves 1/freeShare of a device's free memory to others, such as the libraries
// of the driver.
const freeShare = 16
