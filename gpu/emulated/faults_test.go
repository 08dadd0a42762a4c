package emulated_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
)

// job does a little of everything on two devices, and stops at the first error. It
// returns what it has computed.
func job(p *emulated.Platform) (result []byte, err error) {
	w := &world{p: p}
	var closers []gpu.Device
	defer func() {
		for _, d := range closers {
			_ = d.Synchronize() // no device uses the memory of another one any more
		}
		for _, d := range closers {
			if e := d.Close(); e != nil && err == nil {
				err = e
			}
		}
	}()
	defer func() {
		if stop, ok := recover().(error); ok {
			err = stop
		}
	}()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for i, d := range []*gpu.Device{&w.near, &w.far} {
		var err error
		*d, err = p.Open(i)
		check(err)
		closers = append(closers, *d)
	}
	group, err := p.Group([]gpu.Device{w.near, w.far})
	check(err)
	w.a, err = w.near.NewStream("a")
	check(err)
	w.c, err = w.far.NewStream("c")
	check(err)
	w.e, err = w.near.NewEvent("e")
	check(err)
	w.x, err = w.near.Alloc("x", 64)
	check(err)
	w.z, err = w.far.Alloc("z", 64)
	check(err)
	w.in, err = w.near.AllocPinned("in", 64)
	check(err)
	m, err := w.near.Load(gpu.Image{Name: "gputest"})
	check(err)
	k, err := m.Kernel("affine")
	check(err)
	b, err := w.in.Writing(0, 64)
	check(err)
	for i := range gpu.As[float32](b) {
		gpu.As[float32](b)[i] = float32(i)
	}
	check(w.a.Copy(gpu.All(w.x), gpu.All(w.in)))
	check(w.a.Record(w.e))
	check(w.c.Wait(w.e))
	check(w.c.Copy(gpu.All(w.z), gpu.All(w.x)))
	g, err := w.a.Capture("g", func() error {
		return w.a.Launch(k, gpu.Linear(8, 4), gpu.Update(gpu.Part(w.x, 0, 32)), gpu.Read(gpu.Part(w.x, 32, 32)), gpu.Float32(2), gpu.Int32(8))
	})
	check(err)
	check(w.c.Synchronize()) // the copy has read x
	check(w.a.Run(g))
	check(group.AllReduce([]gpu.Stream{w.a, w.c}, []gpu.Region{gpu.All(w.x), gpu.All(w.z)}))
	check(w.c.Synchronize())
	check(w.a.Synchronize()) // in has been read
	check(w.c.Copy(gpu.All(w.in), gpu.All(w.z)))
	check(w.c.Synchronize())
	b, err = w.in.Reading(0, 64)
	check(err)
	return append([]byte(nil), b...), nil
}

// TestEveryFailure makes each call and each operation of a job fail in turn, with each
// kind of error. The job ends with this error; then another one works, unless hardware is gone.
func TestEveryFailure(t *testing.T) {
	rng := testseed.Rand(t)
	sound := newPlatform(rng.Uint64())
	want, err := job(sound)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []gpu.Kind{gpu.OutOfMemory, gpu.InvalidArgument, gpu.InUse, gpu.WrongDriver, gpu.LaunchFailed, gpu.ECC, gpu.DeviceLost}
	for _, kind := range kinds {
		for n := 1; n <= sound.Calls()-2; n++ { // the last two are those that clean up
			p := newPlatform(rng.Uint64())
			p.FailCall(n, kind)
			expectFailure(t, fmt.Sprintf("call %d", n), p, kind, "", want)
		}
		for n := 1; n <= sound.Operations() && kind.Breaks(); n++ {
			p := newPlatform(rng.Uint64())
			p.FailOperation(n, kind)
			expectFailure(t, fmt.Sprintf("operation %d", n), p, kind, fmt.Sprintf("(operation %d)", n), want)
		}
	}
	if sound.Calls() < 20 || sound.Operations() < 7 {
		t.Errorf("%d calls, %d operations", sound.Calls(), sound.Operations())
	}
}

func expectFailure(t *testing.T, what string, p *emulated.Platform, kind gpu.Kind, during string, want []byte) {
	t.Helper()
	_, err := job(p)
	var e *gpu.Error
	if !errors.As(err, &e) || e.Call == "" || !strings.Contains(e.Error(), during) {
		t.Fatalf("%s fails with %q: %v", what, kind, err)
	}
	if e.Kind != kind && !strings.Contains(e.Reason, "another device of the group failed") {
		t.Fatalf("%s fails with %q: %v", what, kind, err)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	got, err := job(p)
	if kind == gpu.DeviceLost && e.Device >= 0 {
		if !errors.Is(err, gpu.DeviceLost) {
			t.Errorf("%s: after the loss of device %d: %v", what, e.Device, err)
		}
		return
	}
	if err != nil || string(got) != string(want) {
		t.Errorf("%s: afterwards a job gives %v, %v", what, got, err)
	}
}

// TestUndefinedAfterFailure: what a broken device should have written is no result of any kind.
func TestUndefinedAfterFailure(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, newPlatform(seed))
		kept := w.look()
		w.p.FailOperation(1, gpu.ECC)
		w.fill(w.a, w.x)
		_ = w.a.Copy(gpu.All(w.out), gpu.All(w.x))
		if err := w.a.Synchronize(); !errors.Is(err, gpu.ECC) {
			t.Fatal(err)
		}
		// Whether the copy was enqueued depends on when the device broke.
		if v := gpu.As[uint32](kept)[0]; v == 1 {
			t.Errorf("seed %d: the host sees %x", seed, v)
		}
		w.try(w.x.Free())
		w.try(w.near.Close())
		w.try(w.far.Close())
		if w.err != nil {
			t.Error(w.err)
		}
	}
}

// TestPinnedLimit: pinned memory has a limit of its own.
func TestPinnedLimit(t *testing.T) {
	p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<20), PinnedBytes: 1024})
	d, err := p.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.AllocPinned("first", 513)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.AllocPinned("second", 300)
	var e *gpu.Error
	if !errors.As(err, &e) || e.Kind != gpu.OutOfMemory || e.Asked != 300 || e.Free != 256 || e.Total != 1024 {
		t.Errorf("%v", err)
	}
	if err := first.Free(); err != nil {
		t.Error(err)
	}
	if _, err := d.AllocPinned("second", 1024); err != nil {
		t.Error(err)
	}
}
