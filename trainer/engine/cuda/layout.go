package cuda

import (
	"aibox/gpu/kernels"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// execution is a program and the state in which an engine runs it.
type execution struct {
	e    *Engine
	net  *program.Network
	prog *program.Program
	bags hostrows.Bags
	in   program.Inputs // the current mini-batch

	pool     *program.Step // the step that pools bags
	products bool          // the program has matrix products
	sums     []int         // of each step, the offset of its sums, in float32 values; see norm.go
	allSums  int           // float32 values of all steps

	layers
	division
	arenaLayout
}

// arenaLayout is the layout of a device's arena for n examples. Offsets are in bytes.
type arenaLayout struct {
	n       int
	offsets []int // of each inner buffer
	slots   []int // of each slot
	sumsAt  int
	works   []int // of each step, its work memory for sums over examples: see workOf
	zerosAt int   // of the loss terms times 0, followed by the work memory to sum them: see Engine.writeProbe
	bytes   int   // of the arena
}

func (x *execution) init(e *Engine, p *program.Program, devices int) {
	x.e, x.net, x.prog, x.n = e, e.Network, p, -1
	x.bags.Init(x.net, p)
	x.offsets, x.slots = make([]int, len(p.Buffers)), make([]int, len(p.Slots))
	x.sums, x.works = make([]int, len(p.Steps)), make([]int, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == ops.KindBagPool {
			x.pool = s
		}
		x.sums[i] = x.allSums
		x.allSums += sumsOf(s)
		if _, _, ok := productSize(s); ok {
			x.products = true
		}
	}
	x.layers.init(e.Precision, p)
	x.divide(devices)
}

// rows is how many rows a value has, with n examples.
func (x *execution) rows(v program.Value, n int) int {
	if b := &x.prog.Buffers[v.Buffer]; b.Rows != program.Examples {
		return b.Count
	}
	return n
}

// layout plans the arena for n examples.
func (x *execution) layout(n int) {
	if x.n == n {
		return
	}
	x.n, x.bytes = n, 0
	place := func(bytes int) int {
		at := x.bytes
		x.bytes += devicememory.Aligned(bytes)
		return at
	}
	for i, size := range x.prog.Slots {
		x.slots[i] = place(4 * size * n)
	}
	logits, terms := x.prog.Logits.Buffer, x.prog.Terms.Buffer
	together := x.prog.Training() && x.hasMemory(x.prog.Logits) && x.hasMemory(x.prog.Terms)
	if together { // adjacent, as in host memory, for a single copy: see download
		x.offsets[logits], x.offsets[terms] = place(4*x.prog.Buffers[logits].Stride*n), place(4*x.prog.Buffers[terms].Stride*n)
	}
	for i := range x.prog.Buffers {
		b := &x.prog.Buffers[i]
		switch {
		case b.Source != program.Inner, together && (i == logits || i == terms):
		case b.Rows == program.Fixed:
			x.offsets[i] = place(4 * b.Count * b.Stride)
		case b.Rows == program.Examples && b.Scope == program.Tile:
			x.offsets[i] = x.slots[b.Slot]
		case b.Rows == program.Examples:
			x.offsets[i] = place(4 * b.Stride * n)
		}
	}
	for i := range x.halfs {
		if h := &x.halfs[i]; h.weight < 0 && i != x.dense {
			h.at = place(2 * h.stride * x.halfRows(h.value, n))
		}
	}
	for i := range x.prog.Steps {
		x.works[i] = place(kernels.WorkBytes(n, summedColumns(&x.prog.Steps[i])+x.biasColumns(i)))
	}
	if x.prog.Training() && len(x.e.replicas) > 1 {
		x.zerosAt = place(devicememory.Aligned(4*n) + kernels.WorkBytes(n, 1))
	}
	x.sumsAt = place(4 * x.allSums)
}

// inputLayout is the layout of a mini-batch's inputs in the memory of a slot, on the host or on a
// device: offsets and sizes in bytes. A device also has the dense features in bfloat16, at rounded,
// if products need them.
type inputLayout struct{ clock, constants, dense, labels, weights, pooled, bytes, rounded, onDevice int }

func (x *execution) inputs(n int) inputLayout {
	var l inputLayout
	place := func(values int) int {
		at := l.bytes
		l.bytes += devicememory.Aligned(4 * values)
		return at
	}
	l.clock = place(2)
	if x.prog.Training() {
		l.constants = place(len(x.e.constants))
	}
	l.dense = place(n * x.net.Dense)
	l.labels = place(n)
	l.weights = place(n)
	l.pooled = place(x.pooledValues(n))
	l.rounded, l.onDevice = l.bytes, l.bytes
	if x.dense >= 0 {
		l.onDevice += devicememory.Aligned(2 * x.halfs[x.dense].stride * n)
	}
	return l
}

// pooledValues is the number of values of pooled bags, or of their gradients, that are copied
// between the host and the devices.
func (x *execution) pooledValues(n int) int {
	if x.e.rowsOnDevice {
		return 0
	}
	return n * x.net.Fields * x.net.RowDim
}

// outputLayout is the layout of the results in the memory of a slot: offsets and size in bytes.
type outputLayout struct{ logits, terms, pooled, stats, bytes int }

func (x *execution) outputs(n int) outputLayout {
	var l outputLayout
	place := func(values int) int {
		at := l.bytes
		l.bytes += devicememory.Aligned(4 * values)
		return at
	}
	l.logits = place(n)
	if x.prog.Training() {
		l.terms = place(n)
		l.pooled = place(x.pooledValues(n))
		l.stats = l.bytes
		for _, v := range x.prog.Stats {
			place(2 * v.Columns)
		}
	}
	return l
}

// bind sets the matrices of a replica's buffers for its n examples. The weights are the zero Matrix
// if the mini-batch has none.
func (x *execution) bind(r *replica, slot, n int) {
	p, inputs, layout := x.e.params, r.slots[slot].inputs, x.inputs(n)
	if cap(r.base) < len(x.prog.Buffers) {
		r.base = make([]kernels.Matrix, len(x.prog.Buffers))
	}
	r.base, r.dense = r.base[:len(x.prog.Buffers)], layout.rounded
	r.halfs = append(r.halfs, make([]int, max(0, len(x.halfs)-len(r.halfs)))...)
	for i := range x.prog.Buffers {
		b := &x.prog.Buffers[i]
		m := kernels.Matrix{Memory: r.state, Columns: b.Columns, Stride: b.Stride}
		switch b.Source {
		case program.Inner:
			m.Memory, m.Offset = r.arena, x.offsets[i]
		case program.Dense:
			m.Memory, m.Offset = inputs, layout.dense
		case program.Labels:
			m.Memory, m.Offset = inputs, layout.labels
		case program.Weights:
			m.Memory, m.Offset = inputs, layout.weights
			if x.in.Weights == nil {
				m = kernels.Matrix{}
			}
		case program.Param:
			m.Offset = p.value[b.Index]
			if !x.prog.Training() && p.average != nil {
				m.Offset = p.average[b.Index]
			}
		case program.Gradient:
			m.Offset = p.grad[b.Index]
		case program.Running:
			m.Offset = p.running[b.Index]
		default: // on the host, or not a matrix
			m = kernels.Matrix{}
		}
		r.base[i] = m
	}
}

// at is a value's matrix.
func (r *replica) at(v program.Value) kernels.Matrix {
	m := r.base[v.Buffer]
	if m.Memory == nil {
		return m
	}
	return m.Slice(v.Column, v.Column+v.Columns)
}

// MostExamples is the largest mini-batch that the given number of devices can compute, however much
// memory they have: kernels index at most kernels.MostElements. The width of an input counts
// padded, as it is in bfloat16 (padding.go), also for the dense features.
func MostExamples(net *program.Network, devices int) int {
	widest := 1
	for _, p := range []*program.Program{net.Train, net.Infer} {
		for i := range p.Buffers {
			if b := &p.Buffers[i]; (b.Source == program.Inner || b.Source == program.Dense) && b.Rows == program.Examples {
				widest = max(widest, padded(b.Columns))
			}
		}
	}
	return kernels.MostElements / widest * devices
}

// NumbersParameters reports whether the parameters of a network are few enough for the kernels,
// however much memory the devices have: one update may cover all of them, with alignment and
// padding.
func NumbersParameters(net *program.Network) bool {
	numbers := 0
	for _, p := range net.Params {
		numbers += devicememory.Aligned(4*(p.Size()+padTo*p.Shape[len(p.Shape)-1])) / 4
	}
	return numbers <= kernels.MostElements
}
