// Package kernelrig runs kernels in tests of other packages, which compare them with the CPU's
// results.
package kernelrig

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/shim"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
)

// sourceShare: one in sourceShare rounds runs the sources, which takes far longer.
const sourceShare = 8

// Each runs rounds of a test, each with random numbers and a device of its own: with the kernels'
// twins, and some of them with their sources.
func Each(t *testing.T, rounds int, f func(r *Rig, rng *rand.Rand)) {
	run := func(t *testing.T, rounds int, images map[string]emulated.Kernels) {
		seed := testseed.Of(t)
		for round := range uint64(rounds) {
			f(open(t, images, seed+round), rand.New(rand.NewPCG(seed, round)))
			if t.Failed() {
				t.Fatalf("in round %d", round)
			}
		}
	}
	t.Run("twin", func(t *testing.T) { run(t, rounds, twin.Images()) })
	t.Run("source", func(t *testing.T) { run(t, (rounds+sourceShare-1)/sourceShare, shim.Images(t)) })
}

// Rig is a device with kernels. Its methods end the test if something fails.
type Rig struct {
	testing.TB
	Device gpu.Device
	Stream gpu.Stream
	*kernels.Set
}

// open returns an emulated device with kernels, whose operations run in an order that seed decides.
func open(t testing.TB, images map[string]emulated.Kernels, seed uint64) *Rig {
	t.Helper()
	p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<30), Images: images, Seed: seed})
	r := &Rig{TB: t}
	var err error
	r.Device, err = p.Open(0)
	r.Must(err)
	t.Cleanup(func() {
		r.Must(r.Device.Close())
		r.Must(p.Err())
	})
	r.Stream, err = r.Device.NewStream("test")
	r.Must(err)
	r.Set, err = kernels.Load(r.Device)
	r.Must(err)
	return r
}

// Must ends the test if there is an error.
func (r *Rig) Must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// Alloc returns bytes of device memory that nothing has written.
func (r *Rig) Alloc(bytes int) gpu.Region {
	r.Helper()
	m, err := r.Device.Alloc("test", bytes)
	r.Must(err)
	return gpu.All(m)
}

// Put returns device memory with values.
func Put[T gpu.Number](r *Rig, values []T) gpu.Region {
	r.Helper()
	to := r.Alloc(len(values) * int(unsafe.Sizeof(T(0))))
	Set(r, to, values)
	return to
}

// Set writes values to device memory.
func Set[T gpu.Number](r *Rig, to gpu.Region, values []T) {
	r.Helper()
	if len(values) == 0 {
		return
	}
	p, err := r.Device.AllocPinned("put", to.Bytes())
	r.Must(err)
	host, err := p.Writing(0, to.Bytes())
	r.Must(err)
	copy(gpu.As[T](host), values)
	r.Must(r.Stream.Copy(to, gpu.All(p)))
	r.Must(r.Stream.Synchronize())
	r.Must(p.Free())
}

// Get returns what device memory holds.
func Get[T gpu.Number](r *Rig, from gpu.Region) []T {
	r.Helper()
	if from.Bytes() == 0 {
		return nil
	}
	p, err := r.Device.AllocPinned("get", from.Bytes())
	r.Must(err)
	r.Must(r.Stream.Copy(gpu.Region{Memory: p, Width: from.Width, Rows: from.Rows, Pitch: from.Width}, from))
	r.Must(r.Stream.Synchronize())
	host, err := p.Reading(0, from.Bytes())
	r.Must(err)
	values := append([]T(nil), gpu.As[T](host)...)
	r.Must(p.Free())
	return values
}

// Vector is all of a region as a matrix of one row.
func Vector(r gpu.Region) kernels.Matrix {
	return kernels.Matrix{Memory: r.Memory, Offset: r.Offset, Columns: r.Bytes() / 4, Stride: r.Bytes() / 4}
}
