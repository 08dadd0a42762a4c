package gputest

import (
	"errors"

	"aibox/gpu"
)

func testDevices(r *rig) {
	infos := r.Platform.Devices()
	if r.Platform.Name() == "" || len(infos) == 0 {
		r.Fatalf("%q has %d devices", r.Platform.Name(), len(infos))
	}
	for a, i := range infos {
		if i.Name == "" || i.MemoryBytes <= 0 || i.Multiprocessors <= 0 || i.SharedBytes < 48<<10 || i.Major <= 0 {
			r.Errorf("device %d: %+v", a, i)
		}
		for b := range infos {
			l := r.Platform.Link(a, b)
			if (l == gpu.LinkSame) != (a == b) || l != r.Platform.Link(b, a) || l.String() == "" {
				r.Errorf("the link of %d and %d is %v, the other way it is %v", a, b, l, r.Platform.Link(b, a))
			}
		}
	}
	for _, n := range []int{-1, len(infos)} {
		_, err := r.Platform.Open(n)
		r.refuses("a device that does not exist", err, gpu.InvalidArgument)
	}

	// Two on one physical device share its memory and nothing else.
	first := must[gpu.Device](r)(r.Platform.Open(0))
	second := r.open(1)[0]
	if first.Number() != 0 || first.Info() != infos[0] {
		r.Errorf("device 0 is number %d, %+v", first.Number(), first.Info())
	}
	room := func() int64 {
		free, _, err := second.FreeMemory()
		r.must(err)
		return free
	}
	var before, after int64
	for try := 0; try == 0 || after < before && try < 5; try++ { // other programs may take memory meanwhile
		m := r.alloc(first, "m", 64<<10)
		before = room()
		r.must(m.Free())
		after = room()
	}
	if after < before {
		r.Errorf("%d bytes free, after Free %d", before, after)
	}
	r.must(first.Close())
	_, err := first.Alloc("late", 4)
	r.refuses("Alloc on a closed device", err, gpu.InvalidArgument)
	r.refuses("Close of a closed device", first.Close(), gpu.InvalidArgument)
	r.must(second.Synchronize())
}

func testMemory(r *rig) {
	d := r.open(1)[0]
	_, total, err := d.FreeMemory()
	r.must(err)
	if total <= 0 || total > d.Info().MemoryBytes {
		r.Errorf("%d bytes of memory, the device has %d", total, d.Info().MemoryBytes)
	}
	m, p := r.alloc(d, "m", 1000), r.pinned(d, "p", 1000)
	if m.Name() != "m" || p.Name() != "p" || m.Bytes() != 1000 || p.Bytes() != 1000 {
		r.Errorf("%q of %d bytes, %q of %d", m.Name(), m.Bytes(), p.Name(), p.Bytes())
	}
	// More than is free as long as there is m, whatever other programs give back meanwhile.
	tooMuch := total - int64(m.Bytes()) + 1
	_, err = d.Alloc("everything and more", int(tooMuch))
	r.refuses("too much memory", err, gpu.OutOfMemory)
	var e *gpu.Error
	if errors.As(err, &e) && (e.Asked != tooMuch || e.Total != total || e.Free < 0 || e.Free >= e.Asked || e.Device != d.Number()) {
		r.Errorf("%d bytes asked for on device %d, but the error says %+v", tooMuch, d.Number(), e)
	}
	_, err = d.Alloc("negative", -1)
	r.refuses("negative size", err, gpu.InvalidArgument)

	// The device goes on, and what was there is still there.
	s := r.stream(d, "s")
	values := fill(250, func(i int) int32 { return int32(i) })
	put(r, s, m, 0, values)
	equal(r, "after out of memory", get[int32](r, s, m, 0, 250), values)
	r.must(m.Free())
	r.must(p.Free())
	r.refuses("freed memory", m.Free(), gpu.InvalidArgument)
	_, err = p.Reading(0, 4)
	r.refuses("reading freed memory", err, gpu.InvalidArgument)

	empty := r.alloc(d, "empty", 0)
	r.must(s.Fill(gpu.All(empty), 1))
	r.must(s.Synchronize())
	r.must(empty.Free())
}

// equal fails the test unless got is want.
func equal[T comparable](r *rig, what string, got, want []T) {
	r.Helper()
	if len(got) != len(want) {
		r.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			r.Fatalf("%s: value %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}
