//go:build nvidia && linux && amd64

package cuda_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/gpu/gputest"
	"aibox/gpu/kernels"
)

// These tests are of what gputest does not know of: the limits and the libraries of CUDA.

func openPlatform(t *testing.T) gpu.Platform {
	t.Helper()
	p, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	return p
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func openDevice(t *testing.T, p gpu.Platform, number int) gpu.Device {
	t.Helper()
	d := must[gpu.Device](t)(p.Open(number))
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// numbers copies n floats out of a memory.
func numbers(t *testing.T, s gpu.Stream, r gpu.Region) []float32 {
	t.Helper()
	p := must[gpu.Pinned](t)(s.Device().AllocPinned("numbers", r.Width))
	check(t, s.Copy(gpu.All(p), r), s.Synchronize())
	return append([]float32(nil), gpu.As[float32](must[[]byte](t)(p.Reading(0, r.Width)))...)
}

// TestGroupOfAll sums up over all devices, each opened once, so that NCCL can do it.
func TestGroupOfAll(t *testing.T) {
	p := openPlatform(t)
	var devices []gpu.Device
	var streams []gpu.Stream
	var arrays []gpu.Region
	const size = 100_003
	for i := range p.Devices() {
		d := openDevice(t, p, i)
		devices, streams = append(devices, d), append(streams, must[gpu.Stream](t)(d.NewStream("s")))
		arrays = append(arrays, gpu.All(must[gpu.Memory](t)(d.Alloc("array", 4*size))))
	}
	// The context of this thread ends before the group begins.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	check(t, must[gpu.Device](t)(p.Open(0)).Close())
	group := must[gpu.Group](t)(p.Group(devices))
	n := float32(len(devices))
	for range 2 {
		for i, s := range streams {
			check(t, s.Fill(arrays[i], []uint32{0x3f800000, 0x40000000}[min(i, 1)])) // 1 of the first, 2 of others
		}
		check(t, group.AllReduce(streams, arrays), group.AllReduce(streams, arrays))
		for i, s := range streams {
			for k, v := range numbers(t, s, arrays[i]) {
				if want := (2*n - 1) * n; v != want {
					t.Fatalf("device %d: number %d is %v, want %v", i, k, v, want)
				}
			}
		}
	}
	// A group ends with its first device; a new one works.
	check(t, devices[0].Close())
	if err := group.AllReduce(streams, arrays); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("AllReduce with a closed device: %v", err)
	}
	again := openDevice(t, p, 0)
	_ = must[gpu.Group](t)(p.Group(append([]gpu.Device{again}, devices[1:]...)))
}

// TestGroupBreaks: a device that fails before an AllReduce breaks the others, which might wait
// for it, and new devices work, unless failures are sticky.
func TestGroupBreaks(t *testing.T) {
	p := openPlatform(t)
	count := len(p.Devices())
	for round := range 2 {
		a, err := p.Open(0)
		if err != nil && round > 0 && sticky() {
			t.Log("no device works any more:", err)
			return
		}
		check(t, err)
		b := must[gpu.Device](t)(p.Open(1 % count))
		s, u := must[gpu.Stream](t)(a.NewStream("s")), must[gpu.Stream](t)(b.NewStream("u"))
		x, y := must[gpu.Memory](t)(a.Alloc("x", 1<<20)), must[gpu.Memory](t)(b.Alloc("y", 1<<20))
		group := must[gpu.Group](t)(p.Group([]gpu.Device{a, b}))
		streams, arrays := []gpu.Stream{s, u}, []gpu.Region{gpu.All(x), gpu.All(y)}
		check(t, s.Fill(arrays[0], 0), u.Fill(arrays[1], 0), group.AllReduce(streams, arrays), s.Synchronize(), u.Synchronize())
		trap := must[gpu.Kernel](t)(must[gpu.Module](t)(a.Load(gputest.Image())).Kernel("trap"))
		check(t, s.Launch(trap, gpu.Linear(1, 1)))
		broken := group.AllReduce(streams, arrays) // may notice it, or not yet
		if err := u.Synchronize(); broken == nil && !errors.Is(err, gpu.LaunchFailed) {
			t.Errorf("round %d: the other device: %v", round, err)
		}
		if err := s.Synchronize(); !errors.Is(err, gpu.LaunchFailed) {
			t.Errorf("round %d: the device that failed: %v", round, err)
		}
		check(t, a.Close(), b.Close())
	}
}

// TestGraphs: a graph copies between pinned memories as often as it runs, and refuses to run when
// memory that it uses was freed.
func TestGraphs(t *testing.T) {
	p := openPlatform(t)
	d := openDevice(t, p, 0)
	s := must[gpu.Stream](t)(d.NewStream("s"))
	a, c := must[gpu.Memory](t)(d.Alloc("a", 16)), must[gpu.Memory](t)(d.Alloc("c", 16))
	in, out := must[gpu.Pinned](t)(d.AllocPinned("in", 16)), must[gpu.Pinned](t)(d.AllocPinned("out", 16))
	two := gpu.Product{M: 2, N: 2, K: 2, A: gpu.Matrix{Memory: a, Stride: 2}, B: gpu.Matrix{Memory: a, Stride: 2}, C: gpu.Matrix{Memory: c, Stride: 2}}
	check(t, s.PrepareProducts())
	g := must[gpu.Graph](t)(s.Capture("g", func() error {
		return errors.Join(s.Copy(gpu.All(out), gpu.All(in)), s.Copy(gpu.All(a), gpu.All(out)), s.Multiply(two))
	}))
	for i := range 3 {
		copy(gpu.As[float32](must[[]byte](t)(in.Writing(0, 16))), []float32{float32(i), 0, 0, 1})
		check(t, s.Run(g), s.Synchronize())
		check(t, s.Multiply(two))
		if got := numbers(t, s, gpu.All(c)); got[0] != float32(i*i) || got[3] != 1 || got[1] != 0 {
			t.Errorf("run %d: %v", i, got)
		}
	}
	check(t, a.Free())
	if err := s.Run(g); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("Run with freed memory: %v", err)
	}
	check(t, g.Free())
	if err := g.Free(); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("Free of a freed graph: %v", err)
	}
	if len(p.Devices()) > 1 {
		capturePeers(t, s, openDevice(t, p, 1))
	}
}

// TestWorkspace: the products of a stream, and of all its graphs, take Info.ProductBytes together,
// which the stream must have before the first of them is captured.
func TestWorkspace(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	m := must[gpu.Memory](t)(d.Alloc("m", 48))
	at := func(offset int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: offset, Stride: 2} }
	two := gpu.Product{M: 2, N: 2, K: 2, A: at(0), B: at(16), C: at(32)}
	room := func() int64 {
		free, _, err := d.FreeMemory()
		check(t, err)
		return free
	}
	for i := range 2 {
		s := must[gpu.Stream](t)(d.NewStream("s"))
		before := room()
		if _, err := s.Capture("early", func() error { return s.Multiply(two) }); !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), "not prepared") {
			t.Errorf("a product was captured in a stream without a workspace: %v", err)
		}
		if i == 0 {
			check(t, s.PrepareProducts(), s.PrepareProducts())
		} else {
			check(t, s.Multiply(two))
		}
		for range 5 {
			check(t, s.Run(must[gpu.Graph](t)(s.Capture("g", func() error { return errors.Join(s.PrepareProducts(), s.Multiply(two)) }))), s.Multiply(two), s.Synchronize())
		}
		// Of a real device the driver, cuBLAS and other programs take some memory meanwhile, and give some back.
		if took, want := before-room(), d.Info().ProductBytes; isFake() && took != want {
			t.Errorf("products take %d bytes of memory, want %d", took, want)
		}
	}
}

// TestNoRoomForBlas: where cuBLAS does not start because too little memory is free, that is the error.
func TestNoRoomForBlas(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	if !isFake() {
		t.Log("other programs may need the memory of a real device")
		return
	}
	s := must[gpu.Stream](t)(d.NewStream("s"))
	free, _, err := d.FreeMemory()
	check(t, err)
	most := must[gpu.Memory](t)(d.Alloc("most", int(free-d.Info().ProductBytes-1<<20)))
	var full *gpu.Error
	if err := s.PrepareProducts(); !errors.Is(err, gpu.OutOfMemory) || !errors.As(err, &full) || full.Free != 1<<20 || !strings.Contains(err.Error(), "cuBLAS reports status 1") {
		t.Errorf("there is no room for cuBLAS: %v", err)
	}
	check(t, most.Free(), s.PrepareProducts())
}

// capturePeers captures copies from and to another device.
func capturePeers(t *testing.T, s gpu.Stream, peer gpu.Device) {
	x, y := must[gpu.Memory](t)(s.Device().Alloc("x", 4096)), must[gpu.Memory](t)(peer.Alloc("y", 4096))
	wide := func(m gpu.Memory) gpu.Region { return gpu.Region{Memory: m, Offset: 4, Width: 8, Rows: 3, Pitch: 20} }
	g := must[gpu.Graph](t)(s.Capture("peers", func() error {
		return errors.Join(s.Fill(gpu.All(x), 0x3f800000), s.Copy(wide(y), wide(x)), s.Fill(gpu.All(x), 0), s.Copy(gpu.All(x), gpu.All(y)))
	}))
	check(t, s.Run(g))
	got := numbers(t, s, gpu.All(x))
	for i := 1; i < 13; i++ {
		if inside := (i-1)%5 < 2; inside != (got[i] == 1) {
			t.Errorf("number %d is %v", i, got[i])
		}
	}
}

// TestRows: with one row, the stride of a matrix means nothing.
func TestRows(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	s := must[gpu.Stream](t)(d.NewStream("s"))
	m := must[gpu.Memory](t)(d.Alloc("m", 1024))
	check(t, s.Fill(gpu.All(m), 0x40000000)) // 2
	check(t, s.Multiply(gpu.Product{M: 1, N: 1, K: 5, TransB: true, A: gpu.Matrix{Memory: m, Stride: 1}, B: gpu.Matrix{Memory: m, Stride: 0}, C: gpu.Matrix{Memory: m, Offset: 512, Stride: 0}}))
	if got := numbers(t, s, gpu.Part(m, 512, 8)); got[0] != 20 || got[1] != 2 {
		t.Errorf("%v, want 20 and 2", got)
	}
	check(t, s.Multiply(gpu.Product{M: 1, N: 1, C: gpu.Matrix{Memory: m, Offset: 512}, A: gpu.Matrix{Memory: m}, B: gpu.Matrix{Memory: m}}))
	if got := numbers(t, s, gpu.Part(m, 512, 8)); got[0] != 0 || got[1] != 2 {
		t.Errorf("a product with K = 0: %v, want 0 and 2", got)
	}
}

// TestAllocations: what training does all the time allocates nothing.
func TestAllocations(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	s, other := must[gpu.Stream](t)(d.NewStream("s")), must[gpu.Stream](t)(d.NewStream("other"))
	e := must[gpu.Event](t)(d.NewEvent("e"))
	m := must[gpu.Memory](t)(d.Alloc("m", 1024))
	p := must[gpu.Pinned](t)(d.AllocPinned("p", 512))
	affine := must[gpu.Kernel](t)(must[gpu.Module](t)(d.Load(gputest.Image())).Kernel("affine"))
	low, high, all := gpu.Part(m, 0, 64), gpu.Part(m, 64, 64), gpu.All(p)
	args := []gpu.Arg{gpu.Update(low), gpu.Read(high), gpu.Float32(1), gpu.Int32(16)}
	product := gpu.Product{M: 2, N: 2, K: 2, A: gpu.Matrix{Memory: m, Stride: 2}, B: gpu.Matrix{Memory: m, Offset: 64, Stride: 2}, C: gpu.Matrix{Memory: m, Offset: 128, Stride: 2}}
	g := must[gpu.Graph](t)(s.Capture("g", func() error { return s.Fill(low, 0) }))
	fused, _ := withBias(t, s)
	if !must[bool](t)(s.Fuses(fused)) {
		fused = product
	}
	var err error
	do := func(next error) {
		if err == nil {
			err = next
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		do(s.Copy(gpu.Part(m, 0, 512), all))
		do(s.Fill(low, 0))
		do(s.Launch(affine, gpu.Linear(16, 32), args...))
		do(s.Multiply(product))
		_, asked := s.Fuses(fused)
		do(asked)
		do(s.Multiply(fused))
		do(s.Run(g))
		do(s.Record(e))
		do(other.Wait(e))
		do(e.Synchronize())
	}); n != 0 || err != nil {
		t.Errorf("%v allocations, error %v", n, err)
	}
}

// TestFarRows fills and copies rows that are farther apart than the fake driver allows for one call.
func TestFarRows(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	s := must[gpu.Stream](t)(d.NewStream("s"))
	m, c := must[gpu.Memory](t)(d.Alloc("m", 8192)), must[gpu.Memory](t)(d.Alloc("c", 24))
	far := gpu.Region{Memory: m, Offset: 4, Width: 8, Rows: 3, Pitch: 4000}
	check(t, s.Fill(gpu.All(m), 0), s.Fill(far, 0x3f800000), s.Copy(gpu.Region{Memory: c, Width: 8, Rows: 3, Pitch: 8}, far))
	for i, v := range numbers(t, s, gpu.All(c)) {
		if v != 1 {
			t.Errorf("number %d is %v, want 1", i, v)
		}
	}
	sum := float32(0)
	for _, v := range numbers(t, s, gpu.All(m)) {
		sum += v
	}
	if sum != 6 {
		t.Errorf("%v numbers are 1, want 6", sum)
	}
}

// TestLoadRefusals: code that does not compile, and kernels of which the image says nothing or
// something else.
func TestLoadRefusals(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	_, err := d.Load(gpu.Image{Name: "bad", Code: []byte("this is no code")})
	if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), `Load of image "bad"`) {
		t.Errorf("bad code: %v", err)
	}
	image := gputest.Image()
	image.Params = map[string][]gpu.ArgKind{"place": {gpu.Int32Arg}}
	if _, err := d.Load(image); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("wrong parameters: %v", err)
	}
	image.Params = nil
	module := must[gpu.Module](t)(d.Load(image))
	if _, err := module.Kernel("nothing"); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("a kernel that is not there: %v", err)
	}
	// Of a kernel of which the image says nothing, number and sizes of parameters are checked.
	place := must[gpu.Kernel](t)(module.Kernel("place"))
	s, out := must[gpu.Stream](t)(d.NewStream("s")), must[gpu.Memory](t)(d.Alloc("out", 4))
	for _, args := range [][]gpu.Arg{nil, {gpu.Int32(1)}, {gpu.Write(gpu.All(out)), gpu.Int32(1)}} {
		if err := s.Launch(place, gpu.Linear(1, 1), args...); !errors.Is(err, gpu.InvalidArgument) {
			t.Errorf("%v: %v", args, err)
		}
	}
	check(t, s.Launch(place, gpu.Linear(1, 1), gpu.Write(gpu.All(out))))
	if err := d.Synchronize(); err != nil {
		t.Error(err)
	}
}

// TestKernelsOfTraining: the code of the kernels of training has the parameters that Go says, and a
// launch with another kind of argument of the same size is refused.
func TestKernelsOfTraining(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	must[*kernels.Set](t)(kernels.Load(d))
	module := must[gpu.Module](t)(d.Load(kernels.Image()))
	finite := must[gpu.Kernel](t)(module.Kernel("check_finite"))
	s, m := must[gpu.Stream](t)(d.NewStream("s")), must[gpu.Memory](t)(d.Alloc("m", 512))
	flag, values := gpu.Part(m, 0, 4), gpu.Part(m, 256, 4)
	for _, first := range []gpu.Arg{gpu.Read(flag), gpu.Write(flag), gpu.Int64(0)} {
		err := s.Launch(finite, gpu.Linear(1, 256), first, gpu.Read(values), gpu.Int32(1), gpu.Int32(1), gpu.Int32(1))
		if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), "where the kernel has a region to update") {
			t.Errorf("%v for the flag: %v", first.Kind, err)
		}
	}
}

// TestLargeShared runs a kernel with more shared memory than kernels have unasked.
func TestLargeShared(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	s := must[gpu.Stream](t)(d.NewStream("s"))
	out := must[gpu.Memory](t)(d.Alloc("out", 128))
	place := must[gpu.Kernel](t)(must[gpu.Module](t)(d.Load(gputest.Image())).Kernel("place"))
	check(t, s.Launch(place, gpu.Geometry{Block: gpu.Dim{X: 32}, SharedBytes: d.Info().SharedBytes}, gpu.Write(gpu.All(out))), s.Synchronize())
}
