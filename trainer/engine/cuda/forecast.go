package cuda

import (
	"errors"
	"fmt"

	"aibox/gpu"
	"aibox/internal/humanize"
	"aibox/trainer/engine"
)

// Needs is the memory that an engine uses, in bytes.
type Needs struct {
	// Of each device:
	Parameters int64 // with running statistics, and bfloat16 copies where products need them
	Gradients  int64
	Optimizer  int64 // the state of the optimizer
	Averages   int64 // of parameters
	Arena      int64 // activations and their gradients, of the largest mini-batch
	Inputs     int64 // of two mini-batches
	Products   int64 // workspace for matrix products
	// Of the host, for inputs of two mini-batches, or three with rows on devices, and results of
	// two:
	Pinned int64
}

// Device is the total for one device.
func (n *Needs) Device() int64 {
	return n.Parameters + n.Gradients + n.Optimizer + n.Averages + n.Arena + n.Inputs + n.Products
}

// Forecast returns the memory that an engine will use on the given number of devices, for
// mini-batches of at most the given number of examples, not counting rows on the devices. It plans
// the same allocations as New and Train. productBytes is gpu.Info.ProductBytes.
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

// Crowded reports whether other programs must be using a device's memory: more than an eighth of it
// is not free, and the driver takes less than that for one program.
func Crowded(free, total int64) bool { return free < total-total/8 }

// others returns a note for an out-of-memory error: how much of the device's memory is used outside
// the engine. It is empty unless the device is Crowded.
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
	return fmt.Sprintf("; the driver and other programs, such as another job, use %s of its %s (nvidia-smi lists them)",
		humanize.Bytes(full.Total-full.Free-own), humanize.Bytes(full.Total))
}
