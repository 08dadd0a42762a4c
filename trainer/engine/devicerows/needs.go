package devicerows

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/reader"
	"aibox/trainer/engine/devicememory"
)

// needs is the memory for mini-batches, in bytes.
type needs struct {
	work, inputs int // of a device
	pinned       int // of the host, for one slot
}

// size is how large a mini-batch is.
type size struct {
	examples, rows, features        int
	training, weighted, rowWeighted bool
}

// timelineWords is the length of a decay timeline that needs assumes; for a longer one, memory
// grows.
const timelineWords = 4096

// varying is how many parts of a section have a size that depends on the device's rows and
// features.
const varying = 6

// needsOf returns the needs of a mini-batch. Its rows are spread about evenly over the devices, but
// its features need not be: often most of them belong to a few rows, which may all be on one
// device. The result depends on nothing that changes during a run.
func (r *Rows) needsOf(of size) needs {
	devices, some := len(r.parts), of.rows
	if devices > 1 {
		some = min(some, some/devices+some/(4*devices)+64)
	}
	x := r.sectionOf(of, some, of.features)
	n := needs{work: r.workOf(&x, of.training, of.examples).bytes, inputs: x.bytes}
	// Each row and each feature is in one section only, so their sizes add up over the devices.
	all, none := r.sectionOf(of, of.rows, of.features), r.sectionOf(of, 0, 0)
	n.pinned = all.bytes + (devices-1)*(none.bytes+varying*devicememory.Align)
	return n
}

// sectionOf returns the section of a device with the given rows and features of a mini-batch.
func (r *Rows) sectionOf(of size, rows, features int) section {
	devices := len(r.parts)
	x := section{
		Share:   Share{0, (of.examples + devices - 1) / devices},
		counts:  counts{rows: rows, all: of.rows, bagCount: features},
		options: options{averages: r.averaged != nil, decays: r.state.Decay != nil, weighted: of.weighted},
	}
	if x.decays {
		x.timelineWords = timelineWords
	}
	if of.training {
		x.rowBagCount, x.rowWeighted = features, of.rowWeighted
		x.floats = 2 * kernels.UpdateBytes / 4 * r.Network.Fields // at most one group per field
	}
	r.place(&x, of.training, of.examples)
	return x
}

// needsOfAll returns the largest needs of some mini-batches.
func (r *Rows) needsOfAll(batches []reader.Batch) (n needs) {
	for i := range batches {
		b := &batches[i]
		n = n.largest(r.needsOf(size{
			examples: b.N, rows: len(b.Rows), features: len(b.Index),
			training: len(b.RowStarts) > 0, weighted: b.BagWeights != nil, rowWeighted: b.RowWeights != nil,
		}))
	}
	return n
}

// largest returns the maximum of each field.
func (n needs) largest(o needs) needs {
	return needs{work: max(n.work, o.work), inputs: max(n.inputs, o.inputs), pinned: max(n.pinned, o.pinned)}
}

// reserve makes room for mini-batches. REQUIRES: the host has the results of all sent mini-batches.
func (r *Rows) reserve(batches []reader.Batch) error {
	n := r.needsOfAll(batches)
	if r.reserved(n) {
		return nil
	}
	if err := r.synchronize(); err != nil {
		return err
	}
	most := 0
	for i := range batches {
		most = max(most, batches[i].N)
	}
	for i := range r.feed.ring {
		if err := r.growStaging(&r.feed.ring[i], n.pinned, most); err != nil {
			return err
		}
	}
	for i := range r.slots {
		if err := r.growInputs(i, func(int) int { return n.inputs }, most); err != nil {
			return err
		}
	}
	return r.growWork(func(int) int { return n.work }, most)
}

// reserved reports whether there is room.
func (r *Rows) reserved(n needs) bool {
	for _, p := range r.parts {
		if !devicememory.Holds(p.work, n.work) || !devicememory.Holds(p.inputs[0], n.inputs) || !devicememory.Holds(p.inputs[1], n.inputs) {
			return false
		}
	}
	for i := range r.feed.ring {
		if !r.feed.ring[i].holds(n.pinned) {
			return false
		}
	}
	return true
}

// lacks is how many more bytes of a device's memory mini-batches would need.
func (p *part) lacks(n needs) int {
	lack := 0
	for _, m := range []struct {
		have gpu.Memory
		want int
	}{{p.work, n.work}, {p.inputs[0], n.inputs}, {p.inputs[1], n.inputs}} {
		if !devicememory.Holds(m.have, m.want) {
			lack += m.want // an upper bound: growing first frees the old memory
		}
	}
	return lack
}

func batchMemory(what string, examples int) string {
	return fmt.Sprintf("for the %s of a mini-batch of %d examples; a smaller training.batch_size needs less", what, examples)
}
