package emulated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"aibox/gpu"
	"aibox/internal/kernel"
)

// Options says what devices there are, and how they behave.
type Options struct {
	Devices     []gpu.Info // MemoryBytes is how much can be allocated; products take ProductBytes of it, and need none
	Link        gpu.Link   // between any two of them
	PinnedBytes int64      // limit of pinned memory; 0: none
	Images      map[string]Kernels
	Seed        uint64 // see the documentation of the package

	// Fuses says which products with an epilogue devices can do, the same each time; nil: all.
	Fuses func(gpu.ProductShape) bool
	// ZeroesNaN says that the ReLU of an epilogue makes 0 of NaN, as that of cuBLASLt does.
	ZeroesNaN bool
	// RoundsFirst says that a product whose result is bfloat16 is rounded before the bias is added,
	// too, as cuBLASLt does it.
	RoundsFirst bool
}

// Devices describes n devices of the given memory size.
func Devices(n int, bytes int64) []gpu.Info {
	infos := make([]gpu.Info, n)
	for i := range infos {
		infos[i] = gpu.Info{Name: "emulated", MemoryBytes: bytes, Major: 7, Multiprocessors: 1, SharedBytes: 48 << 10}
	}
	return infos
}

// Platform implements gpu.Platform.
type Platform struct {
	o   Options
	mu  sync.Mutex // held during every call
	rng *rand.Rand
	gem kernel.Scratch

	hazard *Hazard // the first
	faults faults
	ranges ranges

	host       clock
	agents     int // the host, and all streams ever made
	operations int // ever enqueued
	pending    list[*operation]
	now        int64   // counts operations that have run
	eager      float64 // how likely it is that one more operation runs when one is enqueued

	open       list[*device]
	used       []int64 // of each physical device
	pinnedUsed int64
	lost       []bool
}

// New returns a platform.
func New(o Options) *Platform {
	p := &Platform{o: o, agents: 1, used: make([]int64, len(o.Devices)), lost: make([]bool, len(o.Devices))}
	p.rng = rand.New(rand.NewPCG(o.Seed, 0))
	p.eager = []float64{0, 0.5, 1}[p.rng.IntN(3)]
	if o.Seed == 0 {
		p.eager = 1
	}
	return p
}

// Name implements gpu.Platform.
func (p *Platform) Name() string { return fmt.Sprintf("emulated devices, seed %d", p.o.Seed) }

// Devices implements gpu.Platform.
func (p *Platform) Devices() []gpu.Info { return slices.Clone(p.o.Devices) }

// Link implements gpu.Platform.
func (p *Platform) Link(a, b int) gpu.Link {
	if a == b {
		return gpu.LinkSame
	}
	return p.o.Link
}

// Err returns the first Hazard, if there was one.
func (p *Platform) Err() error {
	if p.hazard != nil {
		return p.hazard
	}
	return nil
}

// Open implements gpu.Platform.
func (p *Platform) Open(number int) (dev gpu.Device, err error) {
	err = p.do(nil, fmt.Sprintf("Open of device %d", number), func() error {
		if number < 0 || number >= len(p.o.Devices) {
			return gpu.Invalid("there are %d devices", len(p.o.Devices))
		}
		if p.lost[number] {
			return &gpu.Error{Kind: gpu.DeviceLost, Device: number}
		}
		d := &device{p: p, number: number}
		p.open.add(d)
		dev = d
		return nil
	})
	return dev, err
}

// do runs a call of d, or of no device, unless there is a reason for it to fail, and then
// perhaps some operations.
func (p *Platform) do(d *device, what string, f func() error) error {
	return p.call(d, what, func() error {
		if p.hazard != nil {
			return p.hazard
		}
		if d != nil && d.closed {
			return gpu.Invalid("the device was closed")
		}
		if err := p.injected(d); err != nil {
			return err
		}
		if d != nil && d.broken != nil {
			return d.tell()
		}
		if err := f(); err != nil {
			return err
		}
		p.hurry()
		return nil
	})
}

// doAnyway runs a call that does not care whether d is broken.
func (p *Platform) doAnyway(d *device, what string, f func() error) error {
	return p.call(d, what, f)
}

// call runs a call, and completes its error.
func (p *Platform) call(d *device, what string, f func() error) error {
	if !p.mu.TryLock() {
		panic(&Hazard{Kind: Threads, First: "another call", Second: what})
	}
	defer p.mu.Unlock()
	err := f()
	e, ok := err.(*gpu.Error)
	if !ok {
		return err
	}
	full := *e
	full.Call = what
	if d != nil && full.Device < 0 {
		full.Device = d.number
	}
	return &full
}

// report makes h the hazard of the platform if it is the first, and returns the one that it has.
func (p *Platform) report(h *Hazard) error {
	if p.hazard == nil {
		p.hazard = h
	}
	return p.hazard
}

// list is things in the order in which they were made.
type list[T comparable] []T

func (l *list[T]) add(x T) { *l = append(*l, x) }

func (l *list[T]) remove(x T) {
	if i := slices.Index(*l, x); i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
}
