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
	ready             gpu.Event  // in compute: gradients that are to be summed up
	summed            gpu.Event  // in sums: the latest sum is there
}

// memory is that of a device, but for slots.
type memory struct {
	state        gpu.Memory // laid out by parameters
	small        gpu.Memory // the flag and the like: see smallBytes
	arena        gpu.Memory // for the current mini-batch; nil: none yet
	productBytes int64      // of memory that compute has for products
}

// binding is where the program that runs has its values, and what was done to them.
type binding struct {
	base       []kernels.Matrix      // of each buffer
	terms      []kernels.Matrix      // of a sum
	unfinished []kernels.ChunkSums   // that the current segment has still to add up
	pads       map[program.Value]int // of each value that is padded: the last run that has done so
	dense      int                   // where dense features lie in bfloat16, among the inputs
	halfs      []int                 // of each value that is needed in bfloat16: the last run that has made it
}

// deviceSlot is what the host sends for one mini-batch, and marks in the streams.
type deviceSlot struct {
	inputs gpu.Memory // laid out by inputLayout; nil: none yet

	uploaded   gpu.Event // in up: inputs are there
	computed   gpu.Event // in compute: results are there; and later, with several devices and rows on them, that all flags are set
	used       gpu.Event // in compute: all is done
	downloaded gpu.Event // in down: all results are in the memory of the host
	ran        bool      // the events are recorded
}

// What the small memory holds, in bytes, each on its own line of 256.
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

// allocate makes room for the parameters, and for products. Padding and gradients begin with zeros.
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

// computing is the compute stream.
func (r *replica) computing() gpu.Stream { return r.compute }

// summing is the stream of sums beside it.
func (r *replica) summing() gpu.Stream { return r.sums }

// flag is the region of the flag.
func (r *replica) flag() gpu.Region { return gpu.Part(r.small, flagAt, 4) }

// check is a number that is added to all loss terms. A parameter that is NaN makes it NaN, and so
// the loss of the next step, whatever the network makes of the parameter: the ReLU of products with
// epilogues may make 0 of NaN.
func (r *replica) check() gpu.Region { return gpu.Part(r.small, checkAt, 4) }

// bytes is the memory that the replica has on its device.
func (r *replica) bytes() int64 {
	n := r.productBytes
	for _, m := range []gpu.Memory{r.state, r.small, r.arena, r.slots[0].inputs, r.slots[1].inputs} {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}
