package gputest

import (
	"time"

	"aibox/gpu"
)

// step adds x to y, elementwise, n numbers.
func (r *rig) step(s gpu.Stream, y, x gpu.Memory) {
	r.Helper()
	n := y.Bytes() / 4
	r.must(s.Launch(r.kernel(s.Device(), kernelAffine), gpu.Linear(n, 64), gpu.Update(gpu.All(y)), gpu.Read(gpu.All(x)), gpu.Float32(1), gpu.Int32(int32(n))))
}

// link orders all that is in from before what comes in to.
func (r *rig) link(from, to gpu.Stream, e gpu.Event) {
	r.Helper()
	r.must(from.Record(e))
	r.must(to.Wait(e))
}

// testOrder computes Fibonacci numbers in two memories, each step in another one of three streams
// on two devices, which are ordered by events that are used again and again.
func testOrder(r *rig) {
	devices := r.open(2)
	streams := []gpu.Stream{r.stream(devices[0], "first"), r.stream(devices[0], "second"), r.stream(devices[1], "peer")}
	events := []gpu.Event{r.event(devices[0], "first"), r.event(devices[0], "second"), r.event(devices[1], "peer")}
	const n = 100
	a, b := r.alloc(devices[0], "a", 4*n), r.alloc(devices[0], "b", 4*n)
	away := r.alloc(devices[1], "away", 4*n)
	ones := fill(n, func(int) float32 { return 1 })
	put(r, streams[0], a, 0, ones)
	put(r, streams[0], b, 0, ones)
	x, y := float32(1), float32(1)
	for i := range 10 {
		r.step(streams[0], a, b) // a += b
		r.link(streams[0], streams[1], events[0])
		r.step(streams[1], b, a) // b += a
		r.link(streams[1], streams[2], events[1])
		r.must(streams[2].Copy(gpu.All(away), gpu.All(b)))
		if i%2 == 1 {
			r.must(streams[2].Fill(gpu.Part(away, 0, 4), 0)) // the first number becomes 0
		}
		r.must(streams[2].Copy(gpu.All(b), gpu.All(away)))
		r.link(streams[2], streams[0], events[2])
		x += y
		y += x
	}
	got := get[float32](r, streams[0], b, 0, n)
	equal(r, "the others", got[1:], fill(n-1, func(int) float32 { return y }))
	if got[0] != 0 {
		r.Errorf("the first number is %v, want 0", got[0])
	}
	equal(r, "a", get[float32](r, streams[0], a, 4, n-1), fill(n-1, func(int) float32 { return x }))
}

// testEvents: Wait, Synchronize and Done mean the latest Record before them.
func testEvents(r *rig) {
	d := r.open(1)[0]
	s, t := r.stream(d, "s"), r.stream(d, "t")
	e, start := r.event(d, "e"), r.event(d, "start")
	m, copied := r.alloc(d, "m", 4096), r.alloc(d, "copied", 4096)
	one := fill(1024, func(int) uint32 { return 1 })

	r.must(s.Record(start))
	r.must(s.Fill(gpu.All(m), 1))
	r.must(s.Record(e))
	r.must(t.Wait(e))
	r.must(t.Copy(gpu.All(copied), gpu.All(m)))
	r.link(t, s, r.event(d, "read"))
	r.must(s.Fill(gpu.All(m), 2))
	equal(r, "copied after the event", get[uint32](r, t, copied, 0, 1024), one)

	r.must(s.Record(e)) // again, behind the second fill
	for done := false; !done; {
		var err error
		done, err = e.Done()
		r.must(err)
	}
	r.must(m.Free()) // which is allowed now
	took, err := e.Since(start)
	r.must(err)
	if took < 0 || took > time.Hour {
		r.Errorf("the two fills took %v", took)
	}

	p := r.pinned(d, "p", 4096)
	r.must(t.Copy(gpu.All(p), gpu.All(copied)))
	r.must(t.Record(e))
	r.must(t.Fill(gpu.All(copied), 3))
	r.must(e.Synchronize())
	equal(r, "after Synchronize of an event", look[uint32](r, p, 0, 1024), one)
	r.must(d.Synchronize())
	equal(r, "after Synchronize of the device", get[uint32](r, s, copied, 0, 1024), fill(1024, func(int) uint32 { return 3 }))
}

// testDoubleBuffer sends batches through two pinned buffers in each direction, as training does: one
// stream copies to the device, one computes, one copies back, and the host fills and empties buffers
// meanwhile.
func testDoubleBuffer(r *rig) {
	d := r.open(1)[0]
	const n, batches = 256, 9
	up, compute, down := r.stream(d, "up"), r.stream(d, "compute"), r.stream(d, "down")
	type slot struct {
		in, out                       gpu.Pinned
		input, output                 gpu.Memory
		uploaded, computed, delivered gpu.Event
	}
	var slots [2]slot
	for i := range slots {
		slots[i] = slot{
			r.pinned(d, "in", 4*n), r.pinned(d, "out", 4*n), r.alloc(d, "input", 4*n), r.alloc(d, "output", 4*n),
			r.event(d, "uploaded"), r.event(d, "computed"), r.event(d, "delivered"),
		}
	}
	sum := r.alloc(d, "sum", 4*n)
	r.must(compute.Fill(gpu.All(sum), 0))
	total := float32(0)
	collect := func(batch int) {
		if batch < 0 {
			return
		}
		s := &slots[batch%2]
		r.must(s.delivered.Synchronize())
		total += float32(batch)
		equal(r, "sum", look[float32](r, s.out, 0, n), fill(n, func(int) float32 { return total }))
	}
	for batch := range batches {
		collect(batch - 2)
		s := &slots[batch%2]
		set(r, s.in, 0, fill(n, func(int) float32 { return float32(batch) }))
		if batch >= 2 {
			r.must(up.Wait(s.computed)) // the input of two batches ago is no longer needed
		}
		r.must(up.Copy(gpu.All(s.input), gpu.All(s.in)))
		r.link(up, compute, s.uploaded)
		r.step(compute, sum, s.input)
		if batch >= 2 {
			r.must(compute.Wait(s.delivered))
		}
		r.must(compute.Copy(gpu.All(s.output), gpu.All(sum)))
		r.link(compute, down, s.computed)
		r.must(down.Copy(gpu.All(s.out), gpu.All(s.output)))
		r.must(down.Record(s.delivered))
	}
	collect(batches - 2)
	collect(batches - 1)
}
