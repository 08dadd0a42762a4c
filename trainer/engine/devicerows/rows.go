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

// Device is where a part of the rows lies. All work on them is enqueued in Rows. The network is computed in
// Compute, as what it reads is, pooled bags. What both need of the host is sent in Up.
type Device struct {
	gpu.Device
	Kernels           *kernels.Set
	Compute, Rows, Up gpu.Stream
	// RowsUp and RowsDown copy rows of other passes than the current one, beside these streams.
	RowsUp, RowsDown gpu.Stream
	Flag             gpu.Region // where it is not 0, nothing is changed
	// NoRoom completes an error of an allocation, if it is one of out of memory: of how many bytes,
	// and what for.
	NoRoom func(err error, bytes int64, what string) error
}

// Rows is the rows of passes, and of them those of the current mini-batches: there are two slots,
// each with one mini-batch. One goroutine uses it.
type Rows struct {
	engine.Config
	state    *engine.State
	averaged []int32 // of each field, whether its bags are averaged; nil: none is
	decays   bool    // rows do
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
	places   places // of rows
	bringing lane   // from the host
	fetching lane
	traffic  traffic
	memory
	turns
}

// memory is that of a part.
type memory struct {
	rows     gpu.Memory // of passes, of as many words each; nil: none yet
	keys     gpu.Memory // uint64, of these rows, if values have 16 bits
	work     gpu.Memory // of the current mini-batch: see workOf
	inputs   [2]gpu.Memory
	overflow gpu.Memory // of each slot a word, devicememory.Align apart: see kernels.Set.UpdateRows
	unmarked [2]bool    // the host has seen that the word of the slot names no row, and no update of rows has been enqueued since then
}

// turns is what others wait for.
type turns struct {
	gathered gpu.Event    // the values of its rows are there
	done     [2]gpu.Event // of each slot: it uses the memory of no device, and nothing of the slot, any more
	began    [2]bool      // done is recorded
	last     int          // the slot whose done was recorded last
	ended    gpu.Stream   // in which that was; nil: none yet
}

// New returns rows without a pass, also if there is an error. Their optimizer goes on from state,
// which must not be replaced.
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

// Close ends all work on the host; nothing but Traffic may be called any more. What is on the
// devices ends with them.
func (r *Rows) Close() {
	r.feed.worker.close()
	r.plan.worker.close()
	r.worker.close()
}

// averagedFields says of each field whether its bags are averaged; nil: none is.
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

// width is how many values an example has of its pooled bags.
func (r *Rows) width() int { return r.Network.Fields * r.Network.RowDim }

// keyed reports whether updates depend on the keys of rows.
func (r *Rows) keyed() bool { return r.Layout.Format != sparsetable.Float32 }

// table is the rows that a part has, of all passes.
func (r *Rows) table(p *part) kernels.Table {
	return kernels.Table{
		Rows:   gpu.Part(p.rows, 0, r.rowBytes()*p.places.room),
		Values: r.Layout.ValueDim, State: r.Layout.StateDim, Format: kernels.Format(r.Layout.Format), Decays: r.decays,
	}
}

// step is the update of rows in a step of training.
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
