package devicerows

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/reader"
	"aibox/trainer/decay"
	"aibox/trainer/engine/devicememory"
)

// Share is the examples of a mini-batch whose bags a device pools.
type Share struct{ First, N int }

// slot is a mini-batch that the devices work on.
type slot struct {
	*staging
	overflow gpu.Pinned // a word per device, devicememory.Align apart
}

// batchStep is a training step.
type batchStep struct {
	step  int64
	scale float32 // of the learning rate
}

// Send sends the devices the inputs for the work on a mini-batch's rows, for inference: rows are
// decayed up to the current step of the state. shares has the examples of each device. The slot's
// previous mini-batch must have finished, except its Update, for which the stream Up waits.
func (r *Rows) Send(number int, b *reader.Batch, shares []Share) error {
	return r.sendBatch(number, b, shares, nil)
}

// SendTraining is Send for training step number step, the next one of the state; scale multiplies
// the learning rate.
func (r *Rows) SendTraining(number int, b *reader.Batch, shares []Share, step int64, scale float32) error {
	return r.sendBatch(number, b, shares, &batchStep{step, scale})
}

func (r *Rows) sendBatch(number int, b *reader.Batch, shares []Share, training *batchStep) error {
	var h heads
	r.words = r.words[:0]
	if t := r.state.Decay; t != nil {
		now := t.At(r.state.Step)
		r.words = t.AppendWords(now.AppendWords(r.words))
		if training != nil {
			f, c := now.Step()
			h.factors, h.clock = f.Numbers(), c
		}
	}
	if training != nil {
		r.step(*training)
		h.rounding = half.NewRounding(r.Seed, uint64(training.step))
	}
	s := &r.slots[number]
	var err error
	if s.staging, err = r.stage(b, shares, training != nil); err != nil {
		return err
	}
	if err := r.room(s, number); err != nil {
		return err
	}
	for d, p := range r.parts {
		x := &s.sections[d]
		if err := r.fillHead(s.staging, x, h); err != nil {
			return err
		}
		if p.began[number] {
			if err := p.Up.Wait(p.done[number]); err != nil {
				return err
			}
		}
		if err := p.Up.Copy(gpu.Part(p.inputs[number], 0, x.bytes), gpu.Part(s.pinned, x.at, x.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// heads is the parts of sections that depend on the step.
type heads struct {
	rounding half.Rounding
	clock    float32
	factors  [4]float32
}

// fillHead writes the head of a section: the parts that depend on the step, and averaged.
func (r *Rows) fillHead(s *staging, x *section, h heads) error {
	to, err := s.pinned.Writing(x.at, x.bytes)
	if err != nil {
		return err
	}
	if x.averages {
		copy(gpu.As[int32](to[x.averaged:][:4*r.Network.Fields]), r.averaged)
	}
	if x.decays {
		copy(gpu.As[uint64](to[x.moment:][:8*decay.MomentWords]), r.words)
		copy(gpu.As[uint64](to[x.timeline:][:8*x.timelineWords]), r.words[decay.MomentWords:])
	}
	if s.training {
		kernels.AppendRowStep(to[x.step:x.step:x.step+kernels.RowStepBytes], uint64(h.rounding), h.clock, h.factors) // in place
		r.state.RowSteps.AppendGroups(gpu.As[int32](to[x.groups:][:4*r.Network.Fields])[:0])
		copy(gpu.As[float32](to[x.constants:][:4*len(r.floats)]), r.floats)
	}
	return nil
}

// room grows the device memory for a slot's sections, and the work memories.
func (r *Rows) room(s *slot, number int) error {
	enough := s.overflow != nil
	for d, p := range r.parts {
		enough = enough && devicememory.Holds(p.inputs[number], s.sections[d].bytes)
	}
	if !enough {
		if err := r.synchronize(); err != nil {
			return err
		}
		if err := r.growInputs(number, func(d int) int { return s.sections[d].bytes }, s.examples); err != nil {
			return err
		}
	}
	return r.workRoom(s)
}

// growInputs grows the memory of a slot to on(d) bytes on each device d, with some to spare, since
// mini-batches have different numbers of rows. REQUIRES: no device uses it.
func (r *Rows) growInputs(number int, on func(d int) int, examples int) error {
	what := batchMemory("bags", examples)
	if err := devicememory.GrowPinned(r.parts[0], &r.slots[number].overflow, fmt.Sprintf("overflow %d", number), devicememory.Align*len(r.parts), what); err != nil {
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
