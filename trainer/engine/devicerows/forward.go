package devicerows

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/decay"
	"aibox/trainer/engine/devicememory"
)

// work is the layout of a device's work memory: offsets, and the size, in bytes, of the values of a
// mini-batch's rows and of what is computed from them.
type work struct{ values, admitted, factors, grads, dy, means, sums, bytes int }

// workOf lays out the work memory for a section.
func (r *Rows) workOf(x *section, training bool, examples int) (w work) {
	place := func(bytes int) int {
		at := w.bytes
		w.bytes += devicememory.Aligned(bytes)
		return at
	}
	dim := r.Network.RowDim
	w.values = place(4 * dim * x.all)
	w.admitted = place(4 * x.rows)
	if x.decays {
		w.factors = place(kernels.FactorsBytes * x.rows)
	}
	if x.averages {
		w.means = place(4 * examples * r.Network.Fields)
	}
	if training {
		w.grads = place(4 * dim * x.rows)
		w.sums = place(max(kernels.PieceBytes(x.rowBagCount, dim), kernels.ClickBytes(x.rowBagCount)))
		if len(r.parts) > 1 {
			w.dy = place(4 * r.width() * examples)
		}
	}
	return w
}

// workOn lays out the work memory of device d for the mini-batch of a slot.
func (r *Rows) workOn(s *slot, d int) work { return r.workOf(&s.sections[d], s.training, s.examples) }

// workRoom grows the work memories for the mini-batch of a slot.
func (r *Rows) workRoom(s *slot) error {
	enough := true
	for d, p := range r.parts {
		enough = enough && devicememory.Holds(p.work, r.workOn(s, d).bytes)
	}
	if enough {
		return nil
	}
	if err := r.synchronize(); err != nil {
		return err
	}
	return r.growWork(func(d int) int { return r.workOn(s, d).bytes }, s.examples)
}

// growWork grows the work memory of each device d to on(d) bytes. REQUIRES: no device uses it.
func (r *Rows) growWork(on func(d int) int, examples int) error {
	for d, p := range r.parts {
		if err := p.grow(&p.work, "rows of a mini-batch", on(d), batchMemory("rows", examples)); err != nil {
			return err
		}
	}
	return nil
}

// view is a section with the memory that it has on its device.
type view struct {
	*section
	work
	p      *part
	inputs gpu.Memory
}

func (r *Rows) view(number, d int) view {
	s, p := &r.slots[number], r.parts[d]
	return view{&s.sections[d], r.workOn(s, d), p, p.inputs[number]}
}

func (v *view) in(at, bytes int) gpu.Region { return gpu.Part(v.inputs, at, bytes) }

// block is the region of v's work memory for the values of the rows of section x.
func (r *Rows) block(v *view, x *section) gpu.Region {
	dim := 4 * r.Network.RowDim
	return gpu.Part(v.p.work, v.values+dim*x.first, dim*x.rows)
}

// batch describes the rows of a section for package kernels.
func (r *Rows) batch(v *view, training bool) kernels.TableBatch {
	b := kernels.TableBatch{Rows: v.rows, Fields: r.Network.Fields, Index: v.in(v.index, 4*v.rows)}
	if training {
		b.Starts, b.Bags = v.in(v.starts, 4*(v.rows+1)), v.in(v.rowBags, 4*v.rowBagCount)
		if v.rowWeighted {
			b.Weights = v.in(v.rowWeights, 4*v.rowBagCount)
		}
	}
	return b
}

// sumsRegion is work memory for sums over occurrences of rows.
func (v *view) sumsRegion(bytes int) gpu.Region { return gpu.Part(v.p.work, v.sums, bytes) }

func (v *view) admittedRegion() gpu.Region { return gpu.Part(v.p.work, v.admitted, 4*v.rows) }

// meansOf is the region of the factors that turn sums of bags into means, for the examples of s. It
// is empty if no field is averaged.
func (r *Rows) meansOf(v *view, s Share) gpu.Region {
	if !v.averages {
		return gpu.Region{}
	}
	return gpu.Part(v.p.work, v.means+4*r.Network.Fields*s.First, 4*r.Network.Fields*s.N)
}

// Forward enqueues the work on rows that comes before the network: y gets, on each device, the
// pooled bags of its examples. With early, bags are pooled in the stream of rows. REQUIRES: the
// streams have waited for what was sent. With early, there is one device, and nothing in the
// compute stream behind the latest Update uses y.
func (r *Rows) Forward(number int, y []kernels.Matrix, early bool) error {
	s := &r.slots[number]
	for d, p := range r.parts {
		for _, o := range r.parts {
			if o.ended != nil && o.ended != p.Rows {
				if err := p.Rows.Wait(o.done[o.last]); err != nil {
					return err
				}
			}
		}
		if err := r.gather(number, d); err != nil {
			return err
		}
		if early {
			if err := r.pool(p.Rows, number, y[d], d); err != nil {
				return err
			}
		}
		if err := p.Rows.Record(p.gathered); err != nil {
			return err
		}
	}
	for d, p := range r.parts {
		v := r.view(number, d)
		for e, o := range r.parts {
			if err := p.Compute.Wait(o.gathered); err != nil {
				return err
			}
			x := &s.sections[e]
			if o == p || x.rows == 0 {
				continue
			}
			other := r.view(number, e)
			if err := p.Compute.Copy(r.block(&v, x), r.block(&other, x)); err != nil {
				return err
			}
		}
		if !early {
			if err := r.pool(p.Compute, number, y[d], d); err != nil {
				return err
			}
		}
		if !s.training {
			if err := p.finish(p.Compute, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish marks the end of a device's work on the mini-batch of a slot. Its last operation is in s.
func (p *part) finish(s gpu.Stream, number int) error {
	p.began[number], p.last, p.ended = true, number, s
	return s.Record(p.done[number])
}

// gather enqueues the owner's work on its rows: updating statistics, and gathering values.
func (r *Rows) gather(number, d int) error {
	s, v := &r.slots[number], r.view(number, d)
	p, t, b := v.p, r.table(v.p), r.batch(&v, s.training)
	var err error
	if s.training {
		c := kernels.Statistics{Day: r.Day, ShowDecay: r.ShowDecay, MinOccurrences: r.MinOccurrences}
		err = p.Kernels.Collect(p.Rows, p.Flag, &t, &b, c, v.in(v.labels, 4*s.examples), v.admittedRegion(), v.sumsRegion(kernels.ClickBytes(v.rowBagCount)))
	} else {
		err = p.Kernels.Admit(p.Rows, &t, &b, r.MinOccurrences, v.admittedRegion())
	}
	if err != nil {
		return err
	}
	var factors gpu.Region
	if v.decays {
		factors = gpu.Part(p.work, v.factors, kernels.FactorsBytes*v.rows)
		if err := p.Kernels.Settle(p.Rows, &t, &b, v.in(v.moment, 8*decay.MomentWords), v.in(v.timeline, 8*v.timelineWords), factors); err != nil {
			return err
		}
	}
	return p.Kernels.Gather(p.Rows, &t, &b, v.admittedRegion(), factors, r.block(&v, v.section))
}

// pool enqueues the pooling of a device's bags in one of its streams.
func (r *Rows) pool(stream gpu.Stream, number int, y kernels.Matrix, d int) error {
	v := r.view(number, d)
	b := kernels.Bags{
		Fields: r.Network.Fields, Index: v.in(v.bags, 4*v.bagCount), Means: r.meansOf(&v, v.Share),
	}
	if !v.single {
		b.Offsets = v.in(v.offsets, 4*(v.N*r.Network.Fields+1))
	}
	if v.weighted {
		b.Weights = v.in(v.bagWeights, 4*v.bagCount)
	}
	if v.averages {
		b.Averaged = v.in(v.averaged, 4*r.Network.Fields)
	}
	dim := r.Network.RowDim
	return v.p.Kernels.Pool(stream, y, &b, gpu.Part(v.p.work, v.values, 4*dim*v.all), dim, v.N)
}
