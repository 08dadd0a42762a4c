package gputest

import (
	"errors"
	"strings"

	"aibox/gpu"
)

// testBroken breaks a device. Its errors stay, and other devices know nothing of it, unless
// failures are sticky.
func testBroken(r *rig) {
	healthy := r.open(1)[0]
	other := r.stream(healthy, "other")
	m := r.alloc(healthy, "m", 64)
	r.must(other.Fill(gpu.All(m), 5))

	d := must[gpu.Device](r)(r.Platform.Open(0))
	s := r.stream(d, "s")
	e := r.event(d, "e")
	x := r.alloc(d, "x", 64)
	p := r.pinned(d, "p", 64)
	trap := r.kernel(d, kernelTrap)
	r.must(s.Fill(gpu.All(x), 1))
	r.must(s.Launch(trap, gpu.Linear(1, 1)))
	// These may return the error, or not yet.
	_ = s.Copy(gpu.All(p), gpu.All(x))
	_ = s.Record(e)
	err := s.Synchronize()
	r.refuses("Synchronize", err, gpu.LaunchFailed)
	var full *gpu.Error
	if errors.As(err, &full) && (full.Device != d.Number() || full.During != "" && !strings.Contains(full.During, kernelTrap)) {
		r.Errorf("the error says device %d, %q", full.Device, full.During)
	}
	_, alloc := d.Alloc("late", 4)
	_, event := d.NewEvent("late")
	_, stream := d.NewStream("late")
	_, _, free := d.FreeMemory()
	_, look := p.Reading(0, 4)
	for what, err := range map[string]error{
		"Synchronize again": s.Synchronize(), "of the device": d.Synchronize(), "Alloc": alloc, "NewEvent": event, "NewStream": stream, "FreeMemory": free,
		"Fill": s.Fill(gpu.All(x), 2), "Launch": s.Launch(trap, gpu.Linear(1, 1)), "Record": s.Record(e), "Reading": look,
	} {
		r.refuses(what, err, gpu.LaunchFailed)
	}
	r.must(x.Free())
	r.must(d.Close())

	again, err := r.Platform.Open(0)
	if r.Sticky && err != nil {
		r.Log("no device works any more:", err)
		return
	}
	r.must(err)
	equal(r, "the other device", get[uint32](r, other, m, 0, 16), fill(16, func(int) uint32 { return 5 }))
	t := r.stream(again, "t")
	y := r.alloc(again, "y", 64)
	r.must(t.Fill(gpu.All(y), 6))
	equal(r, "a new device", get[uint32](r, t, y, 0, 16), fill(16, func(int) uint32 { return 6 }))
	r.must(again.Close())
}
