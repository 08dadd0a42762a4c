package cuda

import (
	"errors"
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicerows"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/program"
)

// Options says where the engine computes.
type Options struct {
	Platform     gpu.Platform
	Devices      []int // physical devices; a mini-batch is divided among them
	RowsOnDevice bool  // the rows of a pass are in the memory of the devices, not in that of the host
}

// Engine implements engine.Engine.
type Engine struct {
	engine.Config
	state  *engine.State
	rows   *hostrows.Rows
	params *parameters

	rowsOnDevice bool             // as Options has it
	held         *devicerows.Rows // the rows, if they are on the devices; nil: they are on the host

	replicas []*replica
	group    gpu.Group    // of the replicas; nil if there is one
	streams  []gpu.Stream // of a sum over the replicas
	arrays   []gpu.Region

	counters []*counters // of the replicas; see Stats
	sample   sampling
	ranges   gpu.Ranger // what the host does, for profilers

	train, infer execution
	pinned       pinned
	jobs         [2]job     // by slot
	runs         int        // jobs so far; the slot of the next is its last bit, and it has the inputs of pinned.inputsOf
	pending      *job       // whose result was not delivered yet
	trained      bool       // a step of the pass was enqueued, with rows on the devices
	updates      []together // of parameters, in the current step
	constants    []float32  // of these, and of the update of averages
	shapes       map[shape]*captured
	shares       []devicerows.Share
	matrices     []kernels.Matrix // one of each device
	events       []gpu.Event      // one of each device
	batches      []reader.Batch   // of the pass, with rows on the devices
	prepared     prepared
	aheadParts   []part
	copier       kernel.Copier
	pool         pooling
	poolTask     func(lo, hi int) // runPool, bound once
	result       engine.Result

	imported bool
	stopped  bool  // a call of the pass has returned an error
	err      error // that every later call returns
}

// New returns an engine that starts from state on devices that it opens. The caller closes it.
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
	if len(e.replicas) > 1 {
		devices := make([]gpu.Device, len(e.replicas))
		for i, r := range e.replicas {
			devices[i] = r.dev
		}
		if e.group, err = o.Platform.Group(devices); err != nil {
			return nil, err
		}
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

// plan returns an engine for so many devices, which it does not have yet.
func plan(c engine.Config, state *engine.State, devices int, rowsOnDevice bool) *Engine {
	e := &Engine{Config: c, state: state, rowsOnDevice: rowsOnDevice, rows: hostrows.New(c, state), shapes: map[shape]*captured{}}
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

// multiplies tells whether the network has matrix products.
func (e *Engine) multiplies() bool { return e.train.products || e.infer.products }

// Close gives the devices back, with all that is on them. The engine must not be used any more.
func (e *Engine) Close() error {
	var errs []error
	if e.held != nil {
		e.held.Close() // it may still fill pinned memory
	}
	for _, r := range e.replicas { // pinned memory of one is used by all; a broken device uses nothing any more
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

// fail keeps an error, so that all later calls return it.
func (e *Engine) fail(err error) error {
	if e.err == nil {
		e.err = err
	}
	return err
}

// leave ends a call of Train or Infer. A panic, which has become an error, may have left a step half enqueued.
func (e *Engine) leave(err *error) {
	if *err == nil {
		return
	}
	e.stopped = true
	var panicked *panics.Error
	if errors.As(*err, &panicked) {
		_ = e.fail(*err)
	}
}

// usable is the error of a call that only works on what the engine has, which is all right
// after a mini-batch that was not finite.
func (e *Engine) usable() error {
	if errors.Is(e.err, program.ErrNotFinite) {
		return nil
	}
	return e.err
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
		e.result = engine.Result{}
		e.jobs, e.pending, e.batches, e.prepared.batch = [2]job{}, nil, nil, nil
		e.train.in, e.infer.in = program.Inputs{}, program.Inputs{}
	}()
	if e.err == nil && !e.stopped {
		err = panics.Do("the engine", e.deliver)
		e.leave(&err)
	}
	if e.held != nil {
		if stay, err := e.endHeld(); stay || err != nil {
			return err
		}
	}
	if err != nil || e.err != nil {
		return err // or a call has returned it; devices use nothing but memory of the engine
	}
	// What the devices have not done yet may fail, and must do so before anything is committed.
	if err := e.synchronize(); err != nil {
		return err
	}
	if err := e.measure(e.runs + 1); err != nil {
		return e.fail(err)
	}
	if err := e.lookAtMemory(); err != nil {
		return e.fail(err)
	}
	return nil
}

// synchronize waits for all that the devices compute.
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
	if i >= 0 {
		return engine.UpdateError(fmt.Sprintf("parameter %s", e.Network.Params[i].Name), e.state.Step)
	}
	return nil
}
