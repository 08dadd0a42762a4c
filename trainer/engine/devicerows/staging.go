package devicerows

import (
	"slices"

	"aibox/gpu"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine/devicememory"
)

// staging is a mini-batch in pinned memory, on its way to the devices.
type staging struct {
	contents
	shares   []Share
	pinned   gpu.Pinned // the sections of all devices
	sections []section
	order    order
	copier   kernel.Copier
	to       []byte // the bytes of pinned
	also     func() // the argument of Prepare
	filled   bool   // everything is written but the heads of the sections

	orderBytes int64 // memory of order, as of the last stage: the worker may be changing order
}

// contents is what a staging is laid out for.
type contents struct {
	batch         *reader.Batch // nil: its pass has ended
	examples      int
	training      bool
	words, floats int // in the heads of its sections
}

// feed is the two mini-batches that the devices may work on, and the next one, which a worker fills
// meanwhile: filling takes one thread as long as a whole step may take a device.
type feed struct {
	ring   [3]staging
	turn   int      // index of the staging of the next mini-batch
	ahead  *staging // that staging, once the worker has it; else nil
	task   task
	worker *worker
}

// Prepare lets a worker write those parts of the next mini-batch's sections that do not depend on
// earlier steps, and then call also. begun reports whether the worker does so. REQUIRES: the host
// has the results of all sent mini-batches but the last two.
func (r *Rows) Prepare(b *reader.Batch, shares []Share, training bool, also func()) (begun bool, err error) {
	f := &r.feed
	s := &f.ring[f.turn]
	if f.ahead != nil || s.pinned == nil {
		return false, nil
	}
	if s.to, err = s.pinned.Writing(0, s.pinned.Bytes()); err != nil {
		return false, err
	}
	s.set(r.contents(b, training), shares)
	s.also, f.ahead = also, s
	f.worker.begin(&f.task)
	return true, nil
}

// Prepared waits until the work that Prepare has begun is done.
func (r *Rows) Prepared() error {
	_, err := r.feed.task.isDone(true)
	return err
}

// prepare is the work of Prepare.
func (r *Rows) prepare() {
	s := r.feed.ahead
	if r.layout(s) <= len(s.to) {
		r.fillAll(s)
		s.copier.CopyBeside()
		s.filled = true
	}
	if s.also != nil {
		s.also()
	}
}

// stage returns the next mini-batch in pinned memory, without the heads of its sections.
func (r *Rows) stage(b *reader.Batch, shares []Share, training bool) (*staging, error) {
	f, want := &r.feed, r.contents(b, training)
	s := &f.ring[f.turn]
	f.turn = (f.turn + 1) % len(f.ring)
	if err := r.Prepared(); err != nil {
		return nil, err
	}
	f.ahead = nil
	defer func() { s.orderBytes = s.order.bytes() }()
	if s.filled && s.contents == want && slices.Equal(s.shares, shares) {
		s.filled = false
		return s, nil
	}
	s.set(want, shares)
	bytes := r.layout(s)
	if err := r.growStaging(s, bytes, b.N); err != nil {
		return nil, err
	}
	var err error
	if s.to, err = s.pinned.Writing(0, bytes); err != nil {
		return nil, err
	}
	r.fillAll(s)
	s.copier.Copy()
	return s, nil
}

// dropBatches drops all mini-batches, also one that was prepared but not sent.
func (r *Rows) dropBatches() {
	_ = r.Prepared() // an error is irrelevant: the mini-batch is dropped
	r.feed.ahead = nil
	for i := range r.feed.ring {
		s := &r.feed.ring[i]
		s.batch, s.filled = nil, false
	}
}

// contents returns the contents for a mini-batch with the current heads.
func (r *Rows) contents(b *reader.Batch, training bool) contents {
	return contents{b, b.N, training, len(r.words), len(r.floats)}
}

// set assigns a mini-batch to a staging, which is then not filled.
func (s *staging) set(c contents, shares []Share) {
	s.contents, s.shares, s.filled = c, append(s.shares[:0], shares...), false
}

// growStaging grows a staging to sections of the given bytes in total, with some to spare.
// REQUIRES: no device uses it.
func (r *Rows) growStaging(s *staging, bytes, examples int) error {
	if s.holds(bytes) {
		return nil
	}
	return devicememory.GrowPinned(r.parts[0], &s.pinned, "bags", bytes+bytes/spare, batchMemory("bags", examples))
}

// holds reports whether the pinned memory has room for sections of the given bytes in total.
func (s *staging) holds(bytes int) bool { return s.pinned != nil && s.pinned.Bytes() >= bytes }

// fillAll writes all sections without their heads. It leaves large copies to the copier, which the
// caller must run.
func (r *Rows) fillAll(s *staging) {
	for d := range s.sections {
		x := &s.sections[d]
		to := s.to[x.at:][:x.bytes]
		r.fill(s, x, to)
		if s.training {
			r.fillOccurrences(s, x, to)
		}
	}
}

// fill writes the rows and the bags of a section.
func (r *Rows) fill(s *staging, x *section, to []byte) {
	o, c, b, fields := &s.order, &s.copier, s.batch, r.Network.Fields
	ints := func(at, n int) []int32 { return gpu.As[int32](to[at:][:4*n]) }
	lo := b.Offsets[x.First*fields]
	index := ints(x.index, x.rows)
	if !x.single {
		offsets := b.Offsets[x.First*fields:][:x.N*fields+1]
		if to := ints(x.offsets, len(offsets)); lo == 0 {
			kernel.CopyTo(c, to, offsets)
		} else {
			for i, at := range offsets {
				to[i] = at - lo
			}
		}
	}
	if len(r.parts) == 1 {
		c.Find(index, b.Rows, r.current.at)
		kernel.CopyTo(c, gpu.As[int32](to[x.bags:]), b.Index)
	} else {
		for i, row := range o.rows[x.first:][:x.rows] {
			index[i] = r.current.at[b.Rows[row]] / int32(len(r.parts))
		}
		bags := ints(x.bags, x.bagCount)
		for i, row := range b.Index[lo:][:x.bagCount] {
			bags[i] = o.place[row]
		}
	}
	if x.weighted {
		kernel.CopyTo(c, gpu.As[float32](to[x.bagWeights:]), b.BagWeights[lo:][:x.bagCount])
	}
}

// fillOccurrences writes the bags in which the rows of a section occur.
func (r *Rows) fillOccurrences(s *staging, x *section, to []byte) {
	o, c, b := &s.order, &s.copier, s.batch
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
