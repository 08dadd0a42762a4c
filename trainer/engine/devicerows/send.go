package devicerows

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/decay"
)

// Share is the examples of a mini-batch whose bags a device pools.
type Share struct{ First, N int }

// slot is a mini-batch on the host.
type slot struct {
	inputs   gpu.Pinned // the sections of all devices
	overflow gpu.Pinned // of each device a word, align apart
	sections []section
	training bool
	examples int
}

// section is what one device gets of a mini-batch: offsets in bytes from its beginning.
type section struct {
	Share
	at, bytes int // in the pinned memory
	first     int // of its rows, in the order of rows
	rows      int // that it has
	all       int // rows of the mini-batch

	index, offsets, bags, bagWeights        int // of all mini-batches
	starts, rowBags, rowWeights, labels     int // of training
	averaged, moment, timeline              int
	step, groups, constants                 int
	bagCount, rowBagCount                   int
	timelineWords, floats                   int
	weighted, rowWeighted, averages, decays bool
}

// batchStep is a step of training.
type batchStep struct {
	step  int64
	scale float32 // of the learning rate
}

// Send sends what the devices need of a mini-batch to work on its rows; the sums of rows that were
// trained up to the present step of the state. shares has the examples of each device. The mini-batch that the slot had must have
// finished, but for its Update, for which Up waits.
func (r *Rows) Send(number int, b *reader.Batch, shares []Share) error {
	return r.sendBatch(number, b, shares, nil)
}

// SendTraining is Send for a step of training, which is the next one of the state; scale multiplies the learning rate.
func (r *Rows) SendTraining(number int, b *reader.Batch, shares []Share, step int64, scale float32) error {
	return r.sendBatch(number, b, shares, &batchStep{step, scale})
}

func (r *Rows) sendBatch(number int, b *reader.Batch, shares []Share, training *batchStep) error {
	s := &r.slots[number]
	s.training, s.examples = training != nil, b.N
	r.order.set(b, r.current.at, len(r.parts))
	var rounding half.Rounding
	var factors [4]float32
	var clock float32
	r.words = r.words[:0]
	if t := r.state.Decay; t != nil {
		now := t.At(r.state.Step)
		r.words = t.AppendWords(now.AppendWords(r.words))
		if training != nil {
			f, c := now.Step()
			factors, clock = f.Numbers(), c
		}
	}
	if training != nil {
		r.step(*training)
		rounding = half.NewRounding(r.Seed, uint64(training.step))
	}
	r.layout(s, b, shares)
	last := &s.sections[len(s.sections)-1]
	if err := r.room(s, number, last.at+last.bytes); err != nil {
		return err
	}
	if err := r.workRoom(s); err != nil {
		return err
	}
	for d, p := range r.parts {
		x := &s.sections[d]
		to, err := s.inputs.Writing(x.at, x.bytes)
		if err != nil {
			return err
		}
		r.fill(x, b, to)
		if s.training {
			r.fillOccurrences(x, b, to)
			kernels.AppendRowStep(to[x.step:x.step:x.step+kernels.RowStepBytes], uint64(rounding), clock, factors) // in place
			r.state.RowSteps.AppendGroups(gpu.As[int32](to[x.groups:][:4*r.Network.Fields])[:0])
			copy(gpu.As[float32](to[x.constants:][:4*len(r.floats)]), r.floats)
		}
		r.copier.Copy()
		if p.began[number] {
			if err := p.Up.Wait(p.done[number]); err != nil {
				return err
			}
		}
		if err := p.Up.Copy(gpu.Part(p.inputs[number], 0, x.bytes), gpu.Part(s.inputs, x.at, x.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// layout lays out the sections of a mini-batch.
func (r *Rows) layout(s *slot, b *reader.Batch, shares []Share) {
	o, fields := &r.order, r.Network.Fields
	s.sections = resize(s.sections, len(r.parts))
	at := 0
	for d := range s.sections {
		share := shares[d]
		lo, hi := b.Offsets[share.First*fields], b.Offsets[(share.First+share.N)*fields]
		x := section{
			Share: share, at: at, first: o.first[d], rows: o.first[d+1] - o.first[d], all: len(b.Rows), bagCount: int(hi - lo),
			weighted: b.BagWeights != nil, averages: r.averaged != nil, decays: r.decays,
		}
		if x.decays {
			x.timelineWords = len(r.words) - decay.MomentWords
		}
		if s.training {
			x.rowBagCount, x.rowWeighted = o.features[d+1]-o.features[d], b.RowWeights != nil
			x.floats = len(r.floats)
		}
		r.place(&x, s.training, b.N)
		at += x.bytes
		s.sections[d] = x
	}
}

// place gives the parts of a section their places, of a mini-batch with so many examples.
func (r *Rows) place(x *section, training bool, examples int) {
	fields := r.Network.Fields
	place := func(bytes int) int {
		at := x.bytes
		x.bytes += aligned(bytes)
		return at
	}
	x.index = place(4 * x.rows)
	x.offsets = place(4 * (x.N*fields + 1))
	x.bags = place(4 * x.bagCount)
	if x.weighted {
		x.bagWeights = place(4 * x.bagCount)
	}
	if x.averages {
		x.averaged = place(4 * fields)
	}
	if x.decays {
		x.moment = place(8 * decay.MomentWords)
		x.timeline = place(8 * x.timelineWords)
	}
	if !training {
		return
	}
	x.starts = place(4 * (x.rows + 1))
	x.rowBags = place(4 * x.rowBagCount)
	if x.rowWeighted {
		x.rowWeights = place(4 * x.rowBagCount)
	}
	x.labels = place(4 * examples)
	x.step = place(kernels.RowStepBytes)
	x.groups = place(4 * fields)
	x.constants = place(4 * x.floats)
}

// room makes room for the sections of a slot.
func (r *Rows) room(s *slot, number, bytes int) error {
	enough := s.holds(bytes)
	for d, p := range r.parts {
		enough = enough && holds(p.inputs[number], s.sections[d].bytes)
	}
	if enough {
		return nil
	}
	if err := r.synchronize(); err != nil {
		return err
	}
	return r.growInputs(s, number, bytes, func(d int) int { return s.sections[d].bytes }, s.examples)
}

// holds tells whether there is pinned memory for sections of so many bytes.
func (s *slot) holds(bytes int) bool {
	return s.inputs != nil && s.inputs.Bytes() >= bytes && s.overflow != nil
}

// growInputs gives a slot memory for sections of so many bytes together, and of some bytes on each device, with some to spare,
// since mini-batches have different numbers of rows. No device may use it.
func (r *Rows) growInputs(s *slot, number, bytes int, on func(d int) int, examples int) error {
	what := batchMemory("bags", examples)
	if err := r.growPinned(&s.inputs, fmt.Sprintf("bags %d", number), bytes+bytes/spare, what); err != nil {
		return err
	}
	if err := r.growPinned(&s.overflow, fmt.Sprintf("overflow %d", number), align*len(r.parts), what); err != nil {
		return err
	}
	for d, p := range r.parts {
		if err := p.grow(&p.inputs[number], fmt.Sprintf("bags %d", number), on(d), what); err != nil {
			return err
		}
	}
	return nil
}

// synchronize waits for all devices.
func (r *Rows) synchronize() error {
	for _, p := range r.parts {
		if err := p.Synchronize(); err != nil {
			return err
		}
	}
	return nil
}

// fill writes what the rows and bags of a section are. Large copies are left to the copier.
func (r *Rows) fill(x *section, b *reader.Batch, to []byte) {
	o, c, fields := &r.order, &r.copier, r.Network.Fields
	ints := func(at, n int) []int32 { return gpu.As[int32](to[at:][:4*n]) }
	lo := b.Offsets[x.First*fields]
	offsets := b.Offsets[x.First*fields:][:x.N*fields+1]
	index := ints(x.index, x.rows)
	if len(r.parts) == 1 {
		c.Find(index, b.Rows, r.current.at)
		kernel.CopyTo(c, gpu.As[int32](to[x.offsets:]), offsets)
		kernel.CopyTo(c, gpu.As[int32](to[x.bags:]), b.Index)
	} else {
		for i, row := range o.rows[x.first:][:x.rows] {
			index[i] = r.current.at[b.Rows[row]] / int32(len(r.parts))
		}
		from := ints(x.offsets, len(offsets))
		for i, at := range offsets {
			from[i] = at - lo
		}
		bags := ints(x.bags, x.bagCount)
		for i, row := range b.Index[lo:][:x.bagCount] {
			bags[i] = o.place[row]
		}
	}
	if x.weighted {
		kernel.CopyTo(c, gpu.As[float32](to[x.bagWeights:]), b.BagWeights[lo:][:x.bagCount])
	}
	if x.averages {
		copy(ints(x.averaged, fields), r.averaged)
	}
	if x.decays {
		copy(gpu.As[uint64](to[x.moment:][:8*decay.MomentWords]), r.words)
		copy(gpu.As[uint64](to[x.timeline:][:8*x.timelineWords]), r.words[decay.MomentWords:])
	}
}

// fillOccurrences writes the bags in which the rows of a section occur.
func (r *Rows) fillOccurrences(x *section, b *reader.Batch, to []byte) {
	o, c := &r.order, &r.copier
	kernel.CopyTo(c, gpu.As[float32](to[x.labels:]), b.Labels)
	if len(r.parts) == 1 {
		kernel.CopyTo(c, gpu.As[int32](to[x.starts:]), b.RowStarts)
		kernel.CopyTo(c, gpu.As[int32](to[x.rowBags:]), b.RowBags)
		if x.rowWeighted {
			kernel.CopyTo(c, gpu.As[float32](to[x.rowWeights:]), b.RowWeights)
		}
		return
	}
	starts, bags := gpu.As[int32](to[x.starts:][:4*(x.rows+1)]), gpu.As[int32](to[x.rowBags:][:4*x.rowBagCount])
	at := int32(0)
	for i, row := range o.rows[x.first:][:x.rows] {
		starts[i] = at
		at += int32(copy(bags[at:], b.RowBags[b.RowStarts[row]:b.RowStarts[row+1]]))
	}
	starts[x.rows] = at
	if !x.rowWeighted {
		return
	}
	weights := gpu.As[float32](to[x.rowWeights:][:4*x.rowBagCount])
	for i, row := range o.rows[x.first:][:x.rows] {
		copy(weights[starts[i]:], b.RowWeights[b.RowStarts[row]:b.RowStarts[row+1]])
	}
}
