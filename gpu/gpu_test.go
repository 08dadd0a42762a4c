package gpu_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
)

// memory is nothing but a size.
type memory int

func (m memory) Name() string { return "m" }
func (m memory) Bytes() int   { return int(m) }
func (m memory) Free() error  { return nil }

// bytesOf marks the bytes of a region, or returns nil if it does not fit or has rows that overlap.
func bytesOf(r gpu.Region) map[int]bool {
	set := map[int]bool{}
	for i := range r.Rows {
		for k := range r.Width {
			at := r.Offset + i*r.Pitch + k
			if at < 0 || at >= r.Memory.Bytes() || set[at] {
				return nil
			}
			set[at] = true
		}
	}
	return set
}

// TestRegions compares Check, Bytes, Extent and Overlaps with sets of bytes.
func TestRegions(t *testing.T) {
	rng := testseed.Rand(t)
	random := func(rng *rand.Rand) gpu.Region {
		return gpu.Region{Memory: memory(20), Offset: rng.IntN(16), Width: rng.IntN(6), Rows: rng.IntN(4), Pitch: rng.IntN(8)}
	}
	fits, overlaps := 0, 0
	for range 20000 {
		a, b := random(rng), random(rng)
		x, y := bytesOf(a), bytesOf(b)
		if err := a.Check("a"); (err == nil) != (x != nil) {
			t.Fatalf("Check of %+v: %v", a, err)
		}
		if x == nil || y == nil {
			continue
		}
		fits++
		common := false
		lo, hi := 20, -1
		for at := range x {
			common = common || y[at]
			lo, hi = min(lo, at), max(hi, at)
		}
		if a.Overlaps(b) != common || b.Overlaps(a) != common {
			t.Fatalf("%+v and %+v: %v, want %v", a, b, a.Overlaps(b), common)
		}
		if len(x) != a.Bytes() || a.Extent() != max(0, hi-lo+1) {
			t.Fatalf("%+v has %d bytes, extent %d", a, a.Bytes(), a.Extent())
		}
		if common {
			overlaps++
		}
	}
	if fits < 1000 || overlaps < 500 {
		t.Errorf("%d regions fitted, %d overlapped", fits, overlaps)
	}
	huge := 1 << 62
	for _, r := range []gpu.Region{
		{}, {Memory: memory(8), Offset: 9}, {Memory: memory(8), Width: huge, Rows: 4}, {Memory: memory(8), Width: 4, Rows: huge, Pitch: 4},
		{Memory: memory(8), Width: 1, Rows: 3, Pitch: huge}, {Memory: memory(8), Offset: huge, Width: huge, Rows: 2, Pitch: huge},
	} {
		if err := r.Check("r"); !errors.Is(err, gpu.InvalidArgument) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if gpu.Part(memory(8), 0, 4).Overlaps(gpu.Part(memory(9), 0, 4)) {
		t.Error("regions of two memories overlap")
	}
}

func TestErrors(t *testing.T) {
	full := &gpu.Error{Kind: gpu.OutOfMemory, Device: 3, Call: `allocation of "rows"`, Asked: 10, Free: 5, Total: 7}
	if s := full.Error(); s != `gpu: device 3: allocation of "rows": out of memory: 10 bytes requested, 5 of 7 free` {
		t.Error(s)
	}
	failed := &gpu.Error{Kind: gpu.LaunchFailed, Device: 0, Call: "Synchronize", During: `kernel "k"`, Reason: "illegal address"}
	if s := failed.Error(); s != `gpu: device 0: Synchronize: an operation failed on the device during kernel "k": illegal address` {
		t.Error(s)
	}
	for kind, want := range map[gpu.Kind]struct {
		breaks bool
		is     errkind.Kind
	}{
		gpu.OutOfMemory: {false, errkind.Job}, gpu.InvalidArgument: {false, errkind.Internal}, gpu.InUse: {false, errkind.Locked},
		gpu.WrongDriver: {false, errkind.Job}, gpu.LaunchFailed: {true, errkind.Internal}, gpu.ECC: {true, errkind.IO}, gpu.DeviceLost: {true, errkind.IO},
	} {
		err := error(&gpu.Error{Kind: kind, Device: -1})
		is, _ := errkind.Find(err)
		if !errors.Is(err, kind) || kind.Breaks() != want.breaks || is != want.is || strings.Contains(err.Error(), "-1") {
			t.Errorf("%v: breaks %v, is %v", err, kind.Breaks(), is)
		}
	}
}

func TestAs(t *testing.T) {
	// A slice of eight bytes at a multiple of eight has every type.
	b := make([]byte, 8)
	b[4] = 1
	if got := gpu.As[uint32](b); len(got) != 2 || got[1] != 1 {
		t.Error(got)
	}
	if got := gpu.As[float32](b[:0]); len(got) != 0 {
		t.Error(got)
	}
	for _, wrong := range [][]byte{b[:6], b[1:5]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes are numbers", len(wrong))
				}
			}()
			gpu.As[uint32](wrong)
		}()
	}
}

// TestErrorOfAnotherDevice: a device that another one has broken tells what has happened to that
// one, also to those who sort errors.
func TestErrorOfAnotherDevice(t *testing.T) {
	cause := &gpu.Error{Kind: gpu.DeviceLost, Device: 1, Call: "Synchronize"}
	err := error(&gpu.Error{Kind: gpu.LaunchFailed, Device: 0, Call: "Copy", Reason: "another device of the group failed", Cause: cause})
	if !errors.Is(err, gpu.DeviceLost) || !errors.Is(err, gpu.LaunchFailed) || errors.Is(err, gpu.ECC) {
		t.Error("the kinds are wrong")
	}
	if kind := errkind.Of(t.Context(), err); kind != errkind.IO {
		t.Errorf("kind %v", kind)
	}
	const want = "gpu: device 0: Copy: an operation failed on the device: another device of the group failed: gpu: device 1: Synchronize: the device is lost"
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
