package cuda

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/program"
)

// replica is a device with all parameters, for a part of each mini-batch.
type replica struct {
	engine  *Engine
	dev     gpu.Device
	kernels *kernels.Set
	streams
	memory
	slots    [2]deviceSlot
	counters *counters
	marks    marks
	binding
}

// streams are those of a device.
type streams struct {
	compute, up, down gpu.Stream
	rows              gpu.Stream // of devicerows; nil: rows are on the host
	sums              gpu.Stream // of gradients, while others are computed: see buckets.go
	ready             gpu.Event  // in compute: the gradients of a bucket are complete
	summed            gpu.Event  // in sums: the latest sum is complete
}

// memory is the memory of a device, except that of slots.
type memory struct {
	state        gpu.Memory // laid out by parameters
	small        gpu.Memory // the flag and the like: see smallBytes
	arena        gpu.Memory // for the current mini-batch; nil: none yet
	productBytes int64      // workspace of compute for products
}

// binding is where the values of the running program lie, and which of them are prepared.
type binding struct {
	base       []kernels.Matrix      // of each buffer
	terms      []kernels.Matrix      // scratch: terms of a sum, or optimizer state
	unfinished []kernels.ChunkSums   // to be added up at the end of the current segment
	pads       map[program.Value]int // of each padded value: the last run that has cleared its padding
	dense      int                   // offset of the dense features in bfloat16, in the inputs
	halfs      []int                 // of each of layers.halfs: the last run that has converted it
}

// deviceSlot is the inputs of one mini-batch, and events in the streams.
type deviceSlot struct {
	inputs gpu.Memory // laid out by inputLayout; nil: none yet

	uploaded   gpu.Event // in up: the inputs are on the device
	computed   gpu.Event // in compute: the results; recorded again, with rows on several devices, once flags are final
	used       gpu.Event // in compute: the whole job is done
	downloaded gpu.Event // in down: the results are in host memory
	ran        bool      // the events have been recorded
}

// Offsets in the small memory, in bytes; each value has 256 bytes to itself.
const (
	flagAt     = 0   // not 0: something was not finite, and nothing is updated any more
	checkAt    = 256 // a float32 that is 0 or, once a parameter is NaN, NaN
	smallBytes = 512
)

func openReplica(p gpu.Platform, number int) (*replica, error) {
	dev, err := p.Open(number)
	if err != nil {
		return nil, err
	}
	r := &replica{dev: dev, counters: newCounters(dev)}
	if r.kernels, err = kernels.Load(dev); err != nil {
		return r, err
	}
	for _, s := range []struct {
		stream *gpu.Stream
		name   string
	}{{&r.compute, "compute"}, {&r.up, "up"}, {&r.down, "down"}, {&r.sums, "sums"}} {
		if *s.stream, err = r.newStream(s.name); err != nil {
			return r, err
		}
	}
	if r.ready, err = dev.NewEvent("ready"); err != nil {
		return r, err
	}
	if r.summed, err = dev.NewEvent("summed"); err != nil {
		return r, err
	}
	for i := range r.slots {
		s := &r.slots[i]
		for _, e := range []struct {
			event *gpu.Event
			name  string
		}{{&s.uploaded, "uploaded"}, {&s.computed, "computed"}, {&s.used, "used"}, {&s.downloaded, "downloaded"}} {
			if *e.event, err = dev.NewEvent(fmt.Sprintf("%s %d", e.name, i)); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// newStream returns a stream whose operations are counted.
func (r *replica) newStream(name string) (gpu.Stream, error) {
	s, err := r.dev.NewStream(name)
	if err != nil {
		return nil, err
	}
	return &counted{Stream: s, counters: r.counters}, nil
}

// allocate allocates the state memory and the workspace for products. It clears the state memory,
// since padding and gradients must begin with zeros.
func (r *replica) allocate(p *parameters) error {
	var err error
	if r.state, err = r.alloc("parameters", p.bytes,
		"for the parameters of the model and the state of their optimizer; fewer or narrower layers need less"); err != nil {
		return err
	}
	if r.small, err = r.alloc("flag", smallBytes, "for the flag of the engine"); err != nil {
		return err
	}
	if r.engine.multiplies() {
		bytes := r.dev.Info().ProductBytes
		if err := r.compute.PrepareProducts(); err != nil {
			return r.noRoom(err, bytes, "for matrix products")
		}
		r.productBytes = bytes
	}
	if err := r.compute.Fill(gpu.All(r.state), 0); err != nil {
		return err
	}
	return r.compute.Fill(gpu.All(r.small), 0)
}

// computing returns the compute stream.
func (r *replica) computing() gpu.Stream { return r.compute }

// summing returns the stream of gradient sums.
func (r *replica) summing() gpu.Stream { return r.sums }

// flag is the region of the flag.
func (r *replica) flag() gpu.Region { return gpu.Part(r.small, flagAt, 4) }

// check is a number that is added to all loss terms: 0, or NaN once a parameter is NaN. So the loss
// of the next step is NaN even where the network hides the parameter: ReLU in the epilogue of a
// product may turn NaN into 0.
func (r *replica) check() gpu.Region { return gpu.Part(r.small, checkAt, 4) }

// bytes is the device memory that the replica holds.
func (r *replica) bytes() int64 {
	n := r.productBytes
	for _, m := range []gpu.Memory{r.state, r.small, r.arena, r.slots[0].inputs, r.slots[1].inputs} {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}
