package devicerows

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Device is a device with a part of the rows.
type Device struct {
	gpu.Device
	Kernels *kernels.Set
	// Rows does the work on rows; Compute runs the network and, unless early, pools bags; Up copies
	// inputs from the host for both.
	Compute, Rows, Up gpu.Stream
	// RowsUp and RowsDown copy rows of passes other than the current one.
	RowsUp, RowsDown gpu.Stream
	Flag             gpu.Region // if it is not 0, kernels change nothing
	// NoRoom adds to an out-of-memory error how many bytes were asked for, and what for. It returns
	// other errors unchanged.
	NoRoom func(err error, bytes int64, what string) error
}

// Rows is the rows of passes on the devices, and the mini-batches in flight: two slots, each with
// one mini-batch. One goroutine uses it.
type Rows struct {
	engine.Config
	state    *engine.State
	averaged []int32 // of each field: 1 if its bags are averaged, else 0; nil: no field is averaged
	decays   bool    // rows have weight decay
	parts    []*part
	slots    [2]slot
	passes
	feed   feed
	worker *worker
	update kernels.RowUpdate // of the current step
	words  []uint64          // scratch
	floats []float32
}

// part is the rows on one device.
type part struct {
	Device
	number   int
	places   places // in memory.rows
	bringing lane   // from the host
	fetching lane
	traffic  traffic
	memory
	turns
}

// memory is the device memory of a part.
type memory struct {
	rows     gpu.Memory // of passes, by place; nil: none yet
	keys     gpu.Memory // uint64, by place, if values have 16 bits
	work     gpu.Memory // of the current mini-batch: see workOf
	inputs   [2]gpu.Memory
	overflow gpu.Memory // a word per slot, devicememory.Align apart: see kernels.Set.UpdateRows
	unmarked [2]bool    // of each slot: its word is known to name no row, since no update was enqueued after the host read it
}

// turns is events of a part that other streams wait for.
type turns struct {
	gathered gpu.Event    // the values of its rows are gathered
	done     [2]gpu.Event // of each slot: the part no longer uses the slot, nor memory of any device
	began    [2]bool      // done is recorded
	last     int          // the slot whose done was recorded last
	ended    gpu.Stream   // the stream of that record; nil: none yet
}

// New returns Rows without a pass, even with an error. The optimizer continues from state, which
// must not be replaced.
func New(c engine.Config, state *engine.State, devices []Device) (*Rows, error) {
	r := &Rows{Config: c, state: state, averaged: averagedFields(c.Network), decays: state.Decay != nil, worker: newWorker("copying rows")}
	r.feed.worker, r.feed.task = newWorker("copying a mini-batch"), newTask(r.prepare)
	r.plan.worker = newWorker("planning a pass")
	for i, d := range devices {
		p := &part{Device: d, number: i}
		r.parts = append(r.parts, p)
		for _, e := range []struct {
			event *gpu.Event
			name  string
		}{{&p.gathered, "rows gathered"}, {&p.done[0], "rows done 0"}, {&p.done[1], "rows done 1"}} {
			var err error
			if *e.event, err = d.NewEvent(e.name); err != nil {
				return r, err
			}
		}
		if err := p.bringing.init(r, p, "rows up", false, d.RowsUp); err != nil {
			return r, err
		}
		if err := p.fetching.init(r, p, "rows down", true, d.RowsDown); err != nil {
			return r, err
		}
		if err := p.grow(&p.overflow, "overflow", len(r.slots)*devicememory.Align, "for the flags of rows"); err != nil {
			return r, err
		}
	}
	r.plan.init(r.parts)
	return r, nil
}

// Close stops the workers. Only Traffic may be called afterwards. Closing the devices frees their
// memory.
func (r *Rows) Close() {
	r.feed.worker.close()
	r.plan.worker.close()
	r.worker.close()
}

// averagedFields returns 1 for each field whose bags are averaged, else 0; nil if none is.
func averagedFields(net *program.Network) []int32 {
	for i := range net.Infer.Steps {
		s := &net.Infer.Steps[i]
		if s.Kind != ops.KindBagPool || s.Pooling != ops.PoolMean {
			continue
		}
		fields := make([]int32, net.Fields)
		for f := range fields {
			if s.Sums == nil || !s.Sums[f] {
				fields[f] = 1
			}
		}
		return fields
	}
	return nil
}

// width is how many values the pooled bags of an example have.
func (r *Rows) width() int { return r.Network.Fields * r.Network.RowDim }

// keyed reports whether updates depend on the keys of rows, which seed the rounding to 16 bits.
func (r *Rows) keyed() bool { return r.Layout.Format != sparsetable.Float32 }

// table describes the rows of a part, of all passes, for package kernels.
func (r *Rows) table(p *part) kernels.Table {
	return kernels.Table{
		Rows:   gpu.Part(p.rows, 0, r.rowBytes()*p.places.room),
		Values: r.Layout.ValueDim, State: r.Layout.StateDim, Format: kernels.Format(r.Layout.Format), Decays: r.decays,
	}
}

// step sets the row update of a training step and its constants.
func (r *Rows) step(b batchStep) {
	r.state.RowSteps.Prepare(r.Config.Rows, b.step, b.scale)
	first := &r.state.RowSteps.Updates()[0]
	r.update = kernels.RowUpdate{First: first.First.Formula, Rest: first.Rest.Formula, Split: first.Split}
	r.floats = r.floats[:0]
	for i := range r.state.RowSteps.Updates() {
		u := &r.state.RowSteps.Updates()[i]
		r.floats = kernels.AppendUpdate(kernels.AppendUpdate(r.floats, &u.First), &u.Rest)
	}
}
