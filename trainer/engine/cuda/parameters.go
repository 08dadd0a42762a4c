package cuda

import (
	"errors"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// parameters is the layout of the state memory of a device: first all parameters, then all
// gradients, then the first slot of the state of all optimizers, and so on:
//
//	values     | p0  | p1    | p2 | p3  |
//	gradients  | p0  | p1    | p2 | p3  | probe |
//	state      | p0  | p1    |    | p3  |          the optimizer of p2 has none
//
// All arrays have the parameters in the same order, aligned to devicememory.Align, so that
// neighbouring parameters are neighbours in each array. Where products need parameters in bfloat16,
// the updates also write those, in an array with the same order and half the offsets. All offsets
// are in bytes.
type parameters struct {
	net   *program.Network
	dense *optim.Dense // nil if the engine only infers

	order   []int // the parameters in memory order
	pads    []int // of each parameter, how many zeros follow it: see padding.go
	value   []int // of each parameter, its offset
	values  int   // float32 values of all parameters, with the gaps between them
	running []int // of each normalization, the offset of its running statistics
	checks  int   // offset of two words per parameter: see firstNotFinite
	bytes   int

	gradientPlaces
	statePlaces
	roundedPlaces
}

// gradientPlaces is where gradients lie.
type gradientPlaces struct {
	grad          []int // of each parameter
	gradients     int   // the first
	gradientBytes int   // of all gradients and the probe
	probe         int   // a float32 behind them: see Engine.probe
	buckets       []bucket
	last          bucket // with the probe
}

// statePlaces is where the state of the optimizer lies, and averages.
type statePlaces struct {
	slots        [][]int // of each parameter
	slotBytes    int
	average      []int // of each parameter; no averages: nil
	averageBytes int
}

// roundedPlaces is where parameters lie in bfloat16.
type roundedPlaces struct {
	rounds         bool // products need them
	rounded        int
	roundedAverage int // of their averages
}

// layoutParameters plans the state memory. completed has for each parameter the piece of the
// program that completes its gradient, and pads the number of zeros behind it.
func layoutParameters(net *program.Network, dense *optim.Dense, completed, pads []int, rounds bool) *parameters {
	p := &parameters{net: net, dense: dense, pads: pads, roundedPlaces: roundedPlaces{rounds: rounds}}
	place := func(values int) int {
		at := p.bytes
		p.bytes += devicememory.Aligned(4 * values)
		return at
	}
	each := func() []int {
		offsets := make([]int, len(net.Params))
		for _, i := range p.order {
			offsets[i] = place(p.size(i))
		}
		return offsets
	}
	p.arrange(completed)
	p.value = each()
	if n := len(p.order); n > 0 {
		last := p.order[n-1]
		p.values = p.value[last]/4 + p.size(last)
	}
	if dense != nil {
		p.placeGradients(place)
		p.placeState(place)
		if p.averaged() {
			begin := p.bytes
			p.average = each()
			p.averageBytes = p.bytes - begin
		}
	}
	if rounds {
		p.rounded = place((p.values + 1) / 2)
		p.roundedAverage = p.rounded
		if p.average != nil {
			p.roundedAverage = place((p.values + 1) / 2)
		}
	}
	for _, n := range net.Norms {
		p.running = append(p.running, place(len(n.Both)))
	}
	p.checks = place(2 * len(net.Params))
	return p
}

// size is the number of values of a parameter, with its padding.
func (p *parameters) size(i int) int { return p.net.Params[i].Size() + p.pads[i] }

// placeState lays out the state of the optimizers.
func (p *parameters) placeState(place func(values int) int) {
	p.slots = make([][]int, len(p.order))
	begin := p.bytes
	for s, more := 0, true; more; s++ {
		more = false
		for _, i := range p.order {
			if s < len(p.dense.Slots(i)) {
				p.slots[i], more = append(p.slots[i], place(p.size(i))), true
			}
		}
	}
	p.slotBytes = p.bytes - begin
}

// averaged reports whether there are averages of parameters, which inference then uses.
func (p *parameters) averaged() bool { return p.dense != nil && p.dense.Averages() }

// all calls do with each array that has an image on the host and its offset, until an error.
func (p *parameters) all(do func(at int, host []float32) error) error {
	for i, param := range p.net.Params {
		if err := do(p.value[i], param.Data); err != nil {
			return err
		}
		if p.dense == nil {
			continue
		}
		for s, data := range p.dense.Slots(i) {
			if err := do(p.slots[i][s], data); err != nil {
				return err
			}
		}
		if p.average != nil {
			if err := do(p.average[i], p.dense.Average(param)); err != nil {
				return err
			}
		}
	}
	for i, n := range p.net.Norms {
		if err := do(p.running[i], n.Both); err != nil {
			return err
		}
	}
	return nil
}

// vector returns n numbers of the state memory as one row.
func (r *replica) vector(at, n int) kernels.Matrix {
	return kernels.Matrix{Memory: r.state, Offset: at, Columns: n, Stride: n}
}

// half returns n numbers of the bfloat16 array that begins at rounded. at is the offset of the
// first in the corresponding float32 array. It is the zero Half if products need no bfloat16
// parameters.
func (r *replica) half(rounded, at, n int) kernels.Half {
	if !r.engine.params.rounds {
		return kernels.Half{}
	}
	return kernels.Half{Memory: r.state, Offset: rounded + at/2, Columns: n, Stride: n}
}

// round writes all parameters and their averages in bfloat16. Later the updates do so.
func (r *replica) round() error {
	p := r.engine.params
	if !p.rounds {
		return nil
	}
	first := p.order[0]
	if err := r.kernels.ToBF16(r.compute, r.half(p.rounded, 0, p.values), r.vector(p.value[first], p.values), 1); err != nil || p.average == nil {
		return err
	}
	return r.kernels.ToBF16(r.compute, r.half(p.roundedAverage, 0, p.values), r.vector(p.average[first], p.values), 1)
}

// chunkBytes is how much of the parameters is copied at a time between the host and a device.
const chunkBytes = 4 << 20

// Import implements engine.Engine.
func (e *Engine) Import() error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.synchronize(); err != nil { // operations on rows may be pending if a mini-batch was not finite
		return err
	}
	if err := e.transfer(e.replicas, true); err != nil {
		return e.fail(err)
	}
	for _, r := range e.replicas {
		if err := errors.Join(r.compute.Fill(gpu.All(r.small), 0), r.round()); err != nil {
			return e.fail(err)
		}
	}
	// The optimizer may now group its updates differently, so captured graphs are invalid.
	if err := e.synchronize(); err != nil {
		return err
	}
	if err := e.forget(); err != nil {
		return e.fail(err)
	}
	e.imported, e.err = true, nil
	return nil
}

// Export implements engine.Engine.
func (e *Engine) Export() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.imported {
		return nil // the state has not changed since New
	}
	if e.held != nil && e.err == nil {
		if err := e.copyRowsToHost(); err != nil {
			return err
		}
	}
	if err := e.transfer(e.replicas[:1], false); err != nil {
		return e.fail(err)
	}
	return nil
}

// transfer copies everything that parameters.all yields between the host and devices, through
// pinned memory.
func (e *Engine) transfer(replicas []*replica, toDevice bool) error {
	largest := 0
	if err := e.params.all(func(_ int, host []float32) error {
		largest = max(largest, 4*len(host))
		return nil
	}); err != nil || largest == 0 {
		return err
	}
	var pinned gpu.Pinned
	r := replicas[0]
	if err := devicememory.GrowPinned(r.dev, &pinned, "parameters", min(largest, chunkBytes), "for parts of the parameters"); err != nil {
		return err
	}
	err := e.params.all(func(at int, host []float32) error {
		for len(host) > 0 {
			n := min(len(host), pinned.Bytes()/4)
			if err := transferPart(replicas, pinned, at, host[:n], toDevice); err != nil {
				return err
			}
			at, host = at+4*n, host[n:]
		}
		return nil
	})
	if err != nil {
		return err // closing the device frees the memory
	}
	return pinned.Free()
}

// transferPart copies one part, which fits the pinned memory, and waits for the copy.
func transferPart(replicas []*replica, pinned gpu.Pinned, at int, host []float32, toDevice bool) error {
	if toDevice {
		values, err := room(pinned, 0, len(host))
		if err != nil {
			return err
		}
		copy(values, host)
	}
	for _, r := range replicas {
		there, here := gpu.Part(r.state, at, 4*len(host)), gpu.Part(pinned, 0, 4*len(host))
		if toDevice {
			there, here = here, there
		}
		if err := r.compute.Copy(here, there); err != nil {
			return err
		}
	}
	for _, r := range replicas {
		if err := r.compute.Synchronize(); err != nil {
			return err
		}
	}
	if toDevice {
		return nil
	}
	values, err := numbers(pinned, 0, len(host))
	if err != nil {
		return err
	}
	copy(host, values)
	return nil
}

// firstNotFinite returns the first parameter with an infinite or NaN value or, if there is none, the
// number of parameters plus the first one whose state of the optimizer has such a number. If there is
// none, either, it returns -1.
func (e *Engine) firstNotFinite() (int, error) {
	p := e.params
	params := len(p.net.Params)
	if params == 0 {
		return -1, nil
	}
	n := 2 * params
	// The flags lie in the state memory, since rows may have taken all free memory.
	r := e.replicas[0]
	flags := func(first, n int) gpu.Region { return gpu.Part(r.state, p.checks+4*first, 4*n) }
	var pinned gpu.Pinned
	if err := devicememory.GrowPinned(r.dev, &pinned, "check", 4*n, "for the check of the parameters"); err != nil {
		return 0, err
	}
	if err := r.compute.Fill(flags(0, n), 0); err != nil {
		return 0, err
	}
	for i, param := range p.net.Params {
		if err := r.kernels.Finite(r.compute, flags(i, 1), r.vector(p.value[i], len(param.Data)), 1); err != nil {
			return 0, err
		}
		if p.dense == nil {
			continue
		}
		for s, data := range p.dense.Slots(i) {
			if err := r.kernels.Finite(r.compute, flags(params+i, 1), r.vector(p.slots[i][s], len(data)), 1); err != nil {
				return 0, err
			}
		}
	}
	if err := r.compute.Copy(gpu.All(pinned), flags(0, n)); err != nil {
		return 0, err
	}
	if err := r.compute.Synchronize(); err != nil {
		return 0, err
	}
	words, err := pinned.Reading(0, 4*n)
	if err != nil {
		return 0, err
	}
	first := -1
	for i, w := range gpu.As[uint32](words) {
		if w != 0 && first < 0 {
			first = i
		}
	}
	return first, pinned.Free()
}
