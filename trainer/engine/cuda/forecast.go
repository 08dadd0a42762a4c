package cuda

import (
	"errors"
	"fmt"

	"aibox/gpu"
	"aibox/internal/humanize"
	"aibox/trainer/engine"
)

// Needs is the memory that an engine takes, in bytes.
type Needs struct {
	// Of each device:
	Parameters int64 // with running statistics, and the same in bfloat16 where products need that
	Gradients  int64
	Optimizer  int64 // the state of the optimizer
	Averages   int64 // of parameters
	Arena      int64 // activations and their gradients, of the largest mini-batch
	Inputs     int64 // of two mini-batches
	Products   int64 // what the device needs to multiply matrices
	// Of the host, for inputs of two mini-batches, or three with rows on devices, and results of two:
	Pinned int64
}

// Device is all that a device needs.
func (n *Needs) Device() int64 {
	return n.Parameters + n.Gradients + n.Optimizer + n.Averages + n.Arena + n.Inputs + n.Products
}

// Forecast is what an engine on so many devices will take for mini-batches of at most so many
// examples, without rows that are on the devices. It plans what New and Train allocate.
// productBytes is that of gpu.Info.
func Forecast(c engine.Config, state *engine.State, devices, examples int, rowsOnDevice bool, productBytes int64) Needs {
	e := plan(c, state, devices, rowsOnDevice)
	e.replicas = make([]*replica, devices) // layouts only count them
	p := e.params
	n := Needs{Gradients: int64(p.gradientBytes), Optimizer: int64(p.slotBytes), Averages: int64(p.averageBytes)}
	n.Parameters = int64(p.bytes+smallBytes) - n.Gradients - n.Optimizer - n.Averages
	if e.multiplies() {
		n.Products = productBytes
	}
	programs := []*execution{&e.infer}
	if state.Dense != nil {
		e.prepareUpdates(state.Step+1, 1)
		programs = append(programs, &e.train)
	}
	most := (examples + devices - 1) / devices
	var in, inputs, outputs int
	for _, x := range programs {
		x.layout(most)
		n.Arena = max(n.Arena, int64(x.bytes))
		in = max(in, x.inputs(most).onDevice)
		inputs, outputs = max(inputs, x.inputs(examples).bytes), max(outputs, x.outputs(examples).bytes)
	}
	n.Inputs = int64(len(e.jobs)) * int64(in)
	n.Pinned = int64(len(e.pinned.inputs))*int64(inputs) + int64(len(e.pinned.outputs))*int64(outputs)
	return n
}

// Crowded tells whether so little of a device's memory is free that others must be using it: more
// of it than the driver takes for a program.
func Crowded(free, total int64) bool { return free < total-total/8 }

// others says in an error of out of memory how much of the device the engine does not have itself,
// if that is much.
func (r *replica) others(err error) string {
	var full *gpu.Error
	if !errors.As(err, &full) {
		return ""
	}
	own := int64(0)
	for d, o := range r.engine.replicas {
		if o.dev.Number() != r.dev.Number() {
			continue
		}
		own += o.bytes()
		if r.engine.held != nil {
			own += r.engine.held.DeviceBytes(d)
		}
	}
	if !Crowded(full.Free+own, full.Total) {
		return ""
	}
	return fmt.Sprintf("; other programs, such as another job, and the driver have %s of its %s (nvidia-smi names them)",
		humanize.Bytes(full.Total-full.Free-own), humanize.Bytes(full.Total))
}
