package cuda

import (
	"errors"

	"aibox/gpu"
	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/program"
)

// Options says where the engine computes.
type Options struct {
	Platform     gpu.Platform
	Devices      []int // physical devices; a mini-batch is divided among them
	RowsOnDevice bool  // the rows of a pass are in the memory of the devices, not in that of the host
}

// Engine implements engine.Engine. Its embedded parts are declared next to the code that uses them.
type Engine struct {
	engine.Config
	state *engine.State
	rows  *hostrows.Rows // of passes, if they are on the host

	programs
	replicated
	updating
	sending
	underway
	heldRows
	outcome

	sample sampling
	ranges gpu.Ranger // marks the work of the host for profilers
}

// programs is what the devices run.
type programs struct {
	train, infer execution
	shapes       map[shape]*captured
}

// multiplies reports whether the network has matrix products.
func (p *programs) multiplies() bool { return p.train.products || p.infer.products }

// New opens the devices and returns an engine that starts from state. The caller closes it.
func New(c engine.Config, state *engine.State, o Options) (_ *Engine, err error) {
	if len(o.Devices) == 0 {
		return nil, errors.New("cuda: no devices")
	}
	e := plan(c, state, len(o.Devices), o.RowsOnDevice)
	e.ranges = gpu.RangerOf(o.Platform)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, number := range o.Devices {
		r, err := openReplica(o.Platform, number)
		if r != nil {
			r.engine = e
			e.replicas, e.counters = append(e.replicas, r), append(e.counters, r.counters)
		}
		if err != nil {
			return nil, err
		}
		if err := r.allocate(e.params); err != nil {
			return nil, err
		}
	}
	if err := e.join(o.Platform); err != nil {
		return nil, err
	}
	if o.RowsOnDevice {
		if err := e.holdRows(); err != nil {
			return nil, err
		}
	}
	if err = e.lookAtMemory(); err != nil {
		return nil, err
	}
	return e, nil
}

// plan returns an engine for the given number of devices, none of which is open yet.
func plan(c engine.Config, state *engine.State, devices int, rowsOnDevice bool) *Engine {
	e := &Engine{Config: c, state: state, rows: hostrows.New(c, state)}
	e.rowsOnDevice, e.shapes = rowsOnDevice, map[shape]*captured{}
	e.poolTask = e.runPool
	e.prepared.copy = e.prepared.copier.CopyBeside
	e.pinned.inputs = make([]gpu.Pinned, len(e.jobs))
	if rowsOnDevice {
		e.pinned.inputs = append(e.pinned.inputs, nil)
	}
	e.train.init(e, c.Network.Train, devices)
	e.infer.init(e, c.Network.Infer, devices)
	pads := make([]int, len(c.Network.Params))
	for _, x := range []*execution{&e.train, &e.infer} {
		for param, numbers := range x.padWeights {
			pads[param] = max(pads[param], numbers)
		}
	}
	e.params = layoutParameters(c.Network, state.Dense, e.train.completed(), pads, e.train.weights || e.infer.weights)
	e.train.join(devices, e.params.buckets)
	e.infer.join(devices, nil)
	return e
}

// Close closes the devices and frees their memory. The engine must not be used afterwards.
func (e *Engine) Close() error {
	var errs []error
	if e.held != nil {
		e.held.Close() // it may still fill pinned memory
	}
	// All devices must be idle first, since they use pinned memory of the first one. Errors are
	// ignored: a device that has failed uses nothing any more.
	for _, r := range e.replicas {
		_ = r.dev.Synchronize()
	}
	for _, r := range e.replicas {
		errs = append(errs, r.dev.Close())
	}
	e.replicas = nil
	if e.err == nil {
		e.err = errors.New("cuda: the engine was closed")
	}
	return errors.Join(errs...)
}

// Begin implements engine.Engine.
func (e *Engine) Begin(p engine.Pass) error {
	if e.err != nil {
		return e.err
	}
	if !e.imported {
		if err := e.Import(); err != nil {
			return err
		}
	}
	e.stopped, e.trained = false, false
	if e.held != nil {
		if err := panics.Do("the engine", func() error { return e.beginHeld(p) }); err != nil {
			e.held.Abort()
			return e.fail(err)
		}
		return nil
	}
	e.rows.Begin(p)
	return nil
}

// End implements engine.Engine.
func (e *Engine) End() (err error) {
	defer func() {
		e.rows.End()
		e.jobs, e.pending, e.result = [2]job{}, nil, engine.Result{}
		e.batches, e.prepared.batch = nil, nil
		e.train.in, e.infer.in = program.Inputs{}, program.Inputs{}
	}()
	if e.err == nil && !e.stopped {
		err = panics.Do("the engine", e.deliver)
		e.leave(&err)
	}
	if e.held != nil {
		stay, err := e.endHeld()
		switch {
		case err != nil:
			return err
		case stay:
			return e.noteMemory()
		}
	}
	if err != nil || e.err != nil {
		return err // nil if a call has already returned it; devices use no memory but the engine's
	}
	// Pending operations may still fail, and must do so before anything is committed.
	if err := e.synchronize(); err != nil {
		return err
	}
	if err := e.measure(e.runs + 1); err != nil {
		return e.fail(err)
	}
	return e.noteMemory()
}

// noteMemory calls lookAtMemory and keeps its error.
func (e *Engine) noteMemory() error {
	if err := e.lookAtMemory(); err != nil {
		return e.fail(err)
	}
	return nil
}

// synchronize waits for all operations of the devices.
func (e *Engine) synchronize() error {
	for _, r := range e.replicas {
		if err := r.dev.Synchronize(); err != nil {
			return e.fail(err)
		}
	}
	return nil
}

// MemoryBytes implements engine.Engine.
func (e *Engine) MemoryBytes() int64 {
	n := e.rows.Bytes() + e.train.bags.Bytes() + e.infer.bags.Bytes()
	if e.held != nil {
		n += e.held.Bytes()
	}
	return n + e.pinned.bytes()
}

// DeviceBytes is the memory that the engine takes on its most loaded device.
func (e *Engine) DeviceBytes() int64 {
	most := int64(0)
	for d, r := range e.replicas {
		n := r.bytes()
		if e.held != nil {
			n += e.held.DeviceBytes(d)
		}
		most = max(most, n)
	}
	return most
}

// Check implements engine.Engine.
func (e *Engine) Check() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.imported {
		if err := e.Import(); err != nil {
			return err
		}
	}
	i, err := e.firstNotFinite()
	if err != nil {
		return e.fail(err)
	}
	params := e.Network.Params
	switch {
	case i >= len(params):
		return engine.OptimizerError("parameter "+params[i-len(params)].Name, e.state.Step)
	case i >= 0:
		return engine.UpdateError("parameter "+params[i].Name, e.state.Step)
	}
	return nil
}
