package devicerows

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Device is where a part of the rows lies. All work on them is enqueued in Compute, and what it needs of the
// host is sent in Up.
type Device struct {
	gpu.Device
	Kernels     *kernels.Set
	Compute, Up gpu.Stream
	Flag        gpu.Region // where it is not 0, nothing is changed
}

// Rows is the rows of a pass, and of them those of the current mini-batches: there are two slots, each with one
// mini-batch. One goroutine uses it.
type Rows struct {
	engine.Config
	state    *engine.State
	averaged []int32 // of each field, whether its bags are averaged; nil: none is
	parts    []*part
	slots    [2]slot
	staging  [2]staging
	chunk    int // rows that are copied at a time
	pass     engine.Pass
	update   kernels.RowUpdate // of the current step
	order    order
	copier   copier
	mover    mover
	words    []uint64 // scratch
	floats   []float32
}

// part is the rows on one device.
type part struct {
	Device
	number   int
	rows     gpu.Memory // of the pass, of as many words each; nil: none yet
	keys     gpu.Memory // uint64, of these rows, if values have 16 bits
	work     gpu.Memory // of the current mini-batch: see workLayout
	inputs   [2]gpu.Memory
	overflow gpu.Memory // of each slot a word, align apart: see kernels.Set.UpdateRows

	gathered gpu.Event // the values of its rows are there
	passed   gpu.Event // the gradients of its examples are there
	done     gpu.Event // it uses the memory of no device any more
	began    bool      // done is recorded
}

// align is the unit of all places in memory, in bytes.
const align = 256

func aligned(bytes int) int { return (bytes + align - 1) / align * align }

// chunkBytes is how much is copied at a time between the rows of the host and those of a device.
const chunkBytes = 4 << 20

// New returns rows without a pass. Their optimizer goes on from state, which must not be replaced. All memory ends with the
// devices.
func New(c engine.Config, state *engine.State, devices []Device) (*Rows, error) {
	r := &Rows{Config: c, state: state, averaged: averagedFields(c.Network), chunk: max(1, chunkBytes/(4*c.Layout.Words()))}
	r.copier.task, r.mover.task = r.copier.run, r.mover.run
	for i, d := range devices {
		p := &part{Device: d, number: i}
		r.parts = append(r.parts, p)
		for _, e := range []struct {
			event *gpu.Event
			name  string
		}{{&p.gathered, "rows gathered"}, {&p.passed, "gradients passed"}, {&p.done, "rows done"}} {
			var err error
			if *e.event, err = d.NewEvent(e.name); err != nil {
				return nil, err
			}
		}
		if err := p.grow(&p.overflow, "overflow", len(r.slots)*align, "for the flags of rows"); err != nil {
			return nil, err
		}
	}
	for i := range r.staging {
		s := &r.staging[i]
		var err error
		if s.copied, err = r.newEvents(fmt.Sprintf("rows copied %d", i)); err != nil {
			return nil, err
		}
		if err := r.growPinned(&s.memory, fmt.Sprintf("rows %d", i), r.chunk*max(4*c.Layout.Words(), 8), "for the copies of rows"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newEvents returns an event of each device.
func (r *Rows) newEvents(name string) (events []gpu.Event, err error) {
	for _, p := range r.parts {
		e, err := p.NewEvent(name)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
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

// keyed says whether updates depend on the keys of rows.
func (r *Rows) keyed() bool { return r.Layout.Format != sparsetable.Float32 }

// owned is how many of n rows of a pass a part has.
func (r *Rows) owned(p *part, n int) int { return (n - p.number + len(r.parts) - 1) / len(r.parts) }

// Begin copies the rows of a pass to the devices.
func (r *Rows) Begin(pass engine.Pass) error {
	n := len(pass.Keys)
	for _, p := range r.parts {
		if err := r.makeRoom(p, n); err != nil {
			return err
		}
	}
	r.pass = pass
	for _, p := range r.parts {
		if err := r.upload(p); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom makes room for the share of a device of a pass with n rows.
func (r *Rows) makeRoom(p *part, n int) error {
	own := r.owned(p, n)
	what := fmt.Sprintf("for the %d rows that it has of a pass with %d; a smaller pipeline.batches_per_pass or training.batch_size, or more devices, need less", own, n)
	if err := p.grow(&p.rows, "rows", own*4*r.Layout.Words(), what); err != nil || !r.keyed() {
		return err
	}
	return p.grow(&p.keys, "keys of rows", own*8, what)
}

// End forgets the pass.
func (r *Rows) End() { r.pass = engine.Pass{} }

// table is the rows of the pass that a part has.
func (r *Rows) table(p *part) kernels.Table {
	return kernels.Table{
		Rows:   gpu.Part(p.rows, 0, 4*r.Layout.Words()*r.owned(p, len(r.pass.Keys))),
		Values: r.Layout.ValueDim, State: r.Layout.StateDim, Format: kernels.Format(r.Layout.Format), Decays: r.state.Decay != nil,
	}
}

// step is the update of rows in a step of training.
func (r *Rows) step(b batchStep) {
	r.state.RowSteps.PrepareGroups(r.Config.Rows, b.step, b.scale)
	first := &r.state.RowSteps.Updates()[0]
	r.update = kernels.RowUpdate{First: first.First.Formula, Rest: first.Rest.Formula, Split: first.Split}
	r.floats = r.floats[:0]
	for i := range r.state.RowSteps.Updates() {
		u := &r.state.RowSteps.Updates()[i]
		r.floats = kernels.AppendUpdate(kernels.AppendUpdate(r.floats, &u.First), &u.Rest)
	}
}
