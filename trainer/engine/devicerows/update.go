package devicerows

import (
	"slices"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine/devicememory"
)

// Update enqueues the update of rows in a training step. dy has, on each device, the gradients of
// the pooled bags of its examples. The events in known, one per device, are recorded in Compute
// once dy and the flag are final. Up to the next Forward, Compute may continue with operations that
// do not change these.
func (r *Rows) Update(number int, dy []kernels.Matrix, known []gpu.Event) error {
	for d, p := range r.parts {
		if err := p.Rows.Wait(known[d]); err != nil {
			return err
		}
		v := r.view(number, d)
		grads, means := dy[d], r.meansOf(&v, Share{0, r.slots[number].examples})
		if len(r.parts) > 1 {
			var err error
			if grads, err = r.exchange(number, &v, dy, known); err != nil {
				return err
			}
		}
		if err := r.updateOn(number, &v, grads, means); err != nil {
			return err
		}
		if err := p.finish(p.Rows, number); err != nil {
			return err
		}
	}
	return nil
}

// exchange copies the gradients and the means of all examples to the device of v.
func (r *Rows) exchange(number int, v *view, dy []kernels.Matrix, known []gpu.Event) (kernels.Matrix, error) {
	s, width := &r.slots[number], r.width()
	all := kernels.Matrix{Memory: v.p.work, Offset: v.dy, Columns: width, Stride: width}
	for e, o := range r.parts {
		x := &s.sections[e]
		if x.N == 0 {
			continue
		}
		if o != v.p {
			if err := v.p.Rows.Wait(known[e]); err != nil {
				return all, err
			}
		}
		to := all
		to.Offset += 4 * width * x.First
		if err := v.p.Rows.Copy(to.Region(x.N), dy[e].Region(x.N)); err != nil {
			return all, err
		}
		if v.averages && o != v.p {
			other := r.view(number, e)
			if err := v.p.Rows.Copy(r.meansOf(v, x.Share), r.meansOf(&other, x.Share)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// updateOn enqueues the update of the rows of one device.
func (r *Rows) updateOn(number int, v *view, dy kernels.Matrix, means gpu.Region) error {
	p, t, b, dim := v.p, r.table(v.p), r.batch(v, true), r.Network.RowDim
	overflow := gpu.Part(p.overflow, devicememory.Align*number, 4)
	if !p.unmarked[number] {
		if err := p.Rows.Fill(overflow, kernels.NoRow); err != nil {
			return err
		}
	}
	p.unmarked[number] = false
	grads := gpu.Part(p.work, v.grads, 4*dim*v.rows)
	if err := p.Kernels.RowGradients(p.Rows, grads, &b, dy, means, dim, r.slots[number].examples, v.sumsRegion(kernels.PieceBytes(v.rowBagCount, dim))); err != nil {
		return err
	}
	u := r.update
	u.Constants, u.Step = v.in(v.constants, 4*len(r.floats)), v.in(v.step, kernels.RowStepBytes)
	if len(r.floats) > 2*kernels.UpdateBytes/4 {
		u.Groups = v.in(v.groups, 4*r.Network.Fields)
	}
	if r.keyed() {
		u.Keys = gpu.Part(p.keys, 0, keyBytes*p.places.room)
	}
	return p.Kernels.UpdateRows(p.Rows, p.Flag, overflow, &t, &b, &u, v.admittedRegion(), r.block(v, v.section), grads)
}

// Receive enqueues in down the copy of what Overflowed needs from device d, after a wait for
// Update.
func (r *Rows) Receive(number, d int, down gpu.Stream) error {
	if err := down.Wait(r.parts[d].done[number]); err != nil {
		return err
	}
	return down.Copy(gpu.Part(r.slots[number].overflow, devicememory.Align*d, 4), gpu.Part(r.parts[d].overflow, devicememory.Align*number, 4))
}

// Overflowed returns the key of the first row of the mini-batch in which Update has made a value
// infinite or NaN; is reports whether there is one. REQUIRES: the copies of Receive are done.
func (r *Rows) Overflowed(number int) (key uint64, is bool, err error) {
	s := &r.slots[number]
	first := 0 // if is
	for d := range r.parts {
		b, err := s.overflow.Reading(devicememory.Align*d, 4)
		if err != nil {
			return 0, false, err
		}
		at := gpu.As[uint32](b)[0]
		if at == kernels.NoRow {
			r.parts[d].unmarked[number] = true
			continue
		}
		x := &s.sections[d]
		row := int(at)
		if len(r.parts) > 1 {
			row = int(s.order.rows[x.first+row])
		}
		if is && row > first {
			continue
		}
		index, err := s.pinned.Reading(x.at+x.index, 4*x.rows)
		if err != nil {
			return 0, false, err
		}
		place := gpu.As[int32](index)[at]*int32(len(r.parts)) + int32(d)
		key, first, is = r.current.Keys[slices.Index(r.current.at, place)], row, true
	}
	return key, is, nil
}
