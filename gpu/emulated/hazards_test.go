package emulated_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
)

// world is what the programs of these tests work with. All its memory is written and 64
// bytes long.
type world struct {
	t          *testing.T
	p          *emulated.Platform
	near, far  gpu.Device
	a, b, c    gpu.Stream // c is of far
	x, y, z    gpu.Memory // z is of far
	in, out    gpu.Pinned
	e, f, late gpu.Event // late is of far
	m          gpu.Module
	err        error // the first
}

// try keeps the first error. Programs go on after it, as careless ones do.
func (w *world) try(err error) {
	if w.err == nil {
		w.err = err
	}
}

func try[T any](w *world) func(v T, err error) T {
	return func(v T, err error) T {
		w.try(err)
		return v
	}
}

func newWorld(t *testing.T, p *emulated.Platform) *world {
	t.Helper()
	w := &world{t: t, p: p}
	w.near, w.far = try[gpu.Device](w)(p.Open(0)), try[gpu.Device](w)(p.Open(1))
	w.a, w.b, w.c = try[gpu.Stream](w)(w.near.NewStream("a")), try[gpu.Stream](w)(w.near.NewStream("b")), try[gpu.Stream](w)(w.far.NewStream("c"))
	w.x, w.y, w.z = try[gpu.Memory](w)(w.near.Alloc("x", 64)), try[gpu.Memory](w)(w.near.Alloc("y", 64)), try[gpu.Memory](w)(w.far.Alloc("z", 64))
	w.in, w.out = try[gpu.Pinned](w)(w.near.AllocPinned("in", 64)), try[gpu.Pinned](w)(w.near.AllocPinned("out", 64))
	w.e, w.f, w.late = try[gpu.Event](w)(w.near.NewEvent("e")), try[gpu.Event](w)(w.near.NewEvent("f")), try[gpu.Event](w)(w.far.NewEvent("late"))
	w.m = try[gpu.Module](w)(w.near.Load(gpu.Image{Name: "gputest"}))
	for _, m := range []gpu.Pinned{w.in, w.out} {
		clear(try[[]byte](w)(m.Writing(0, 64)))
	}
	w.fill(w.a, w.x)
	w.fill(w.a, w.y)
	w.fill(w.c, w.z)
	w.try(w.near.Synchronize())
	w.try(w.far.Synchronize())
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w
}

func (w *world) fill(s gpu.Stream, m gpu.Memory)      { w.try(s.Fill(gpu.All(m), 1)) }
func (w *world) copy(s gpu.Stream, to, of gpu.Memory) { w.try(s.Copy(gpu.All(to), gpu.All(of))) }
func (w *world) look() []byte                         { return try[[]byte](w)(w.out.Reading(0, 64)) }
func (w *world) write() []byte                        { return try[[]byte](w)(w.in.Writing(0, 64)) }

// order orders from before to, if it is there.
func (w *world) order(there bool, from, to gpu.Stream, e gpu.Event) {
	if there {
		w.try(from.Record(e))
		w.try(to.Wait(e))
	}
}

// launch runs a kernel on x, with a number.
func (w *world) launch(name string, kind func(gpu.Region) gpu.Arg, i int) {
	k := try[gpu.Kernel](w)(w.m.Kernel(name))
	w.try(w.a.Launch(k, gpu.Linear(1, 1), kind(gpu.Part(w.x, 16, 16)), gpu.Int32(int32(i))))
}

// finish waits for all streams, and returns the first error, or the hazard if one was
// found later.
func (w *world) finish() error {
	w.try(w.near.Synchronize())
	w.try(w.far.Synchronize())
	if err := w.p.Err(); w.err == nil && err != nil {
		w.t.Errorf("no call returned it: %v", err)
	}
	return w.err
}

// faulty is programs that are right if they are told to be, and otherwise lack something.
var faulty = []struct {
	name          string
	program       func(w *world, right bool)
	kind          emulated.HazardKind
	first, second string
}{
	{"write in one stream, read in another", func(w *world, right bool) {
		w.fill(w.a, w.x)
		w.order(right, w.a, w.b, w.e)
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"read in one stream, write in another", func(w *world, right bool) {
		w.copy(w.a, w.y, w.x)
		w.order(right, w.a, w.b, w.e)
		w.fill(w.b, w.x)
	}, emulated.Race, `copy of "x"`, `fill of "x"`},
	{"two writes", func(w *world, right bool) {
		w.fill(w.a, w.x)
		w.order(right, w.a, w.b, w.e)
		w.fill(w.b, w.x)
	}, emulated.Race, `"a"`, `"b"`},
	{"one byte in common", func(w *world, right bool) {
		w.try(w.a.Fill(gpu.Part(w.x, 0, 16), 1))
		at := 16
		if !right {
			at = 15
		}
		w.try(w.b.Copy(gpu.Part(w.y, 0, 8), gpu.Part(w.x, at, 8)))
	}, emulated.Race, `fill of "x"[0:16]`, `copy of "x"[15:23]`},
	{"columns of a matrix", func(w *world, right bool) {
		at := 8
		if !right {
			at = 4
		}
		w.try(w.a.Fill(gpu.Region{Memory: w.x, Width: 8, Rows: 4, Pitch: 16}, 1))
		w.try(w.b.Fill(gpu.Region{Memory: w.x, Offset: at, Width: 8, Rows: 4, Pitch: 16}, 1))
	}, emulated.Race, `stream "a"`, `stream "b"`},
	{"event recorded too early", func(w *world, right bool) {
		if !right {
			w.try(w.a.Record(w.e))
		}
		w.fill(w.a, w.x)
		if right {
			w.try(w.a.Record(w.e))
		}
		w.try(w.b.Wait(w.e))
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"wait before the event is recorded again", func(w *world, right bool) {
		w.try(w.a.Record(w.e))
		if !right {
			w.try(w.b.Wait(w.e))
		}
		w.fill(w.a, w.x)
		w.try(w.a.Record(w.e))
		if right {
			w.try(w.b.Wait(w.e))
		}
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"wait too late", func(w *world, right bool) {
		w.fill(w.a, w.x)
		w.order(right, w.a, w.b, w.e)
		w.copy(w.b, w.y, w.x)
		w.order(true, w.a, w.b, w.e)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"order through a third stream", func(w *world, right bool) {
		w.fill(w.a, w.x)
		w.order(true, w.a, w.c, w.e)
		w.order(right, w.c, w.b, w.late)
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"synchronized another stream", func(w *world, right bool) {
		w.fill(w.a, w.x)
		if right {
			w.try(w.a.Synchronize())
		} else {
			w.try(w.b.Synchronize())
		}
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `fill of "x"`, `copy of "x"`},
	{"copy from a peer", func(w *world, right bool) {
		w.fill(w.c, w.z)
		w.order(right, w.c, w.a, w.late)
		w.copy(w.a, w.x, w.z)
	}, emulated.Race, `fill of "z"`, `copy of "z"`},
	{"upload behind the copy to a peer", func(w *world, right bool) {
		w.copy(w.c, w.z, w.x)
		w.order(right, w.c, w.a, w.late)
		w.copy(w.a, w.x, w.in)
	}, emulated.Race, `copy of "x"`, `copy of "in"`},
	{"kernel", func(w *world, right bool) {
		w.launch("poke update", gpu.Update, 0)
		w.order(right, w.a, w.b, w.e)
		w.try(w.b.Copy(gpu.Part(w.y, 0, 4), gpu.Part(w.x, 28, 4)))
	}, emulated.Race, `kernel "poke update"`, `copy of "x"[28:32]`},
	{"product", func(w *world, right bool) {
		at := func(m gpu.Memory, offset int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: offset, Stride: 2} }
		w.try(w.a.Multiply(gpu.Product{M: 2, N: 2, K: 2, A: at(w.x, 0), B: at(w.x, 16), C: at(w.y, 32)}))
		w.order(right, w.a, w.b, w.e)
		w.try(w.b.Fill(gpu.Part(w.x, 28, 4), 0))
	}, emulated.Race, `product float32 2x2x2`, `fill of "x"`},
	{"all-reduce", func(w *world, right bool) {
		w.fill(w.b, w.x)
		w.order(right, w.b, w.a, w.e)
		g := try[gpu.Group](w)(w.p.Group([]gpu.Device{w.near, w.far}))
		w.try(g.AllReduce([]gpu.Stream{w.a, w.c}, []gpu.Region{gpu.All(w.x), gpu.All(w.z)}))
	}, emulated.Race, `fill of "x"`, `AllReduce in stream "a" of device 0 in stream "c" of device 1`},
	{"use of the sum", func(w *world, right bool) {
		g := try[gpu.Group](w)(w.p.Group([]gpu.Device{w.near, w.far}))
		w.try(g.AllReduce([]gpu.Stream{w.a, w.c}, []gpu.Region{gpu.All(w.x), gpu.All(w.z)}))
		if right {
			w.try(w.c.Record(w.late))
			w.try(w.b.Wait(w.late)) // the sum is there on all devices at once
		}
		w.copy(w.b, w.y, w.x)
	}, emulated.Race, `AllReduce`, `copy of "x"`},
	{"graph freed early", func(w *world, right bool) {
		g := try[gpu.Graph](w)(w.a.Capture("g", func() error { return w.a.Fill(gpu.All(w.x), 2) }))
		w.try(w.a.Run(g))
		if right {
			w.try(w.a.Synchronize())
		}
		w.try(g.Free())
	}, emulated.Race, `fill of "x"`, `frees graph "g"`},
	{"result looked at early", func(w *world, right bool) {
		w.copy(w.a, w.out, w.x)
		if right {
			w.try(w.a.Synchronize())
		}
		w.look()
	}, emulated.Race, `copy of "x"`, `the host reads "out"`},
	{"result of the step before", func(w *world, right bool) {
		w.try(w.a.Record(w.f))
		w.copy(w.a, w.out, w.x)
		w.try(w.a.Record(w.e))
		if right {
			w.try(w.e.Synchronize())
		} else {
			w.try(w.f.Synchronize())
		}
		w.look()
	}, emulated.Race, `copy of "x"`, `the host reads "out"`},
	{"event not done", func(w *world, right bool) {
		w.copy(w.a, w.out, w.x)
		w.try(w.a.Record(w.e))
		for done := false; right && !done; {
			done = try[bool](w)(w.e.Done())
		}
		w.look()
	}, emulated.Race, `copy of "x"`, `the host reads "out"`},
	{"pinned buffer filled again early", func(w *world, right bool) {
		w.write()
		w.copy(w.a, w.x, w.in)
		if right {
			w.try(w.a.Synchronize())
		}
		w.write()
	}, emulated.Race, `copy of "in"`, `the host writes "in"`},
	{"memory freed early", func(w *world, right bool) {
		w.fill(w.a, w.x)
		if right {
			w.try(w.a.Synchronize())
		}
		w.try(w.x.Free())
	}, emulated.Race, `fill of "x"`, `the host frees memory "x"`},
	{"pinned memory freed early", func(w *world, right bool) {
		w.copy(w.a, w.x, w.in)
		if right {
			w.try(w.a.Synchronize())
		}
		w.try(w.in.Free())
	}, emulated.Race, `copy of "in"`, `the host frees pinned memory "in"`},
	{"device closed while a peer reads", func(w *world, right bool) {
		w.copy(w.a, w.x, w.z)
		if right {
			w.try(w.a.Synchronize())
		}
		w.try(w.far.Close())
		w.far = w.near
	}, emulated.Race, `copy of "z"`, `the host frees memory "z"`},
	{"fresh memory", func(w *world, right bool) {
		fresh := try[gpu.Memory](w)(w.near.Alloc("fresh", 68))
		if right {
			w.fill(w.a, fresh)
		} else {
			w.try(w.a.Fill(gpu.Part(fresh, 0, 60), 1))
		}
		w.try(w.a.Copy(gpu.All(w.x), gpu.Part(fresh, 0, 64)))
	}, emulated.Unwritten, `copy of "fresh"`, `byte 60 of memory "fresh"`},
	{"fresh pinned memory", func(w *world, right bool) {
		fresh := try[gpu.Pinned](w)(w.near.AllocPinned("fresh", 64))
		if right {
			clear(try[[]byte](w)(fresh.Writing(0, 64)))
		}
		_ = try[[]byte](w)(fresh.Reading(0, 64))
	}, emulated.Unwritten, `the host reads "fresh"`, `byte 0 of pinned memory "fresh"`},
	{"a side of a product that is nowhere", func(w *world, right bool) {
		fresh := try[gpu.Memory](w)(w.near.Alloc("fresh", 16))
		at := func(m gpu.Memory, offset int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: offset, Stride: 2} }
		if right {
			w.fill(w.a, fresh)
		}
		w.try(w.a.Multiply(gpu.Product{M: 2, N: 2, K: 2, A: at(w.x, 0), B: at(fresh, 0), C: at(w.x, 16)}))
	}, emulated.Unwritten, `product`, `memory "fresh"`},
	{"kernel writes what it reads", func(w *world, right bool) {
		if right {
			w.launch("poke update", gpu.Update, 2)
		} else {
			w.launch("poke read", gpu.Read, 2)
		}
	}, emulated.Outside, `kernel "poke read" in stream "a"`, `byte 24`},
	{"kernel writes behind its region", func(w *world, right bool) {
		w.launch("poke far", gpu.Update, map[bool]int{true: 3, false: 4}[right])
	}, emulated.Outside, `kernel "poke far"`, `argument 0, "x"[16:32], byte 32`},
	{"kernel writes between rows", func(w *world, right bool) {
		k := try[gpu.Kernel](w)(w.m.Kernel("poke update"))
		r := gpu.Region{Memory: w.x, Width: 8, Rows: 3, Pitch: 16}
		w.try(w.a.Launch(k, gpu.Linear(1, 1), gpu.Update(r), gpu.Int32(map[bool]int32{true: 4, false: 6}[right])))
	}, emulated.Outside, `kernel "poke update"`, `byte 24`},
	{"kernel leaves bytes out", func(w *world, right bool) {
		if right {
			w.launch("poke update", gpu.Update, 0)
		} else {
			w.launch("poke write", gpu.Write, 0)
		}
	}, emulated.LeftOut, `kernel "poke write"`, `byte 20 of the memory`},
}

func TestFaultyPrograms(t *testing.T) {
	rng := testseed.Rand(t)
	for _, c := range faulty {
		t.Run(c.name, func(t *testing.T) {
			for _, seed := range []uint64{0, rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()} {
				w := newWorld(t, newPlatform(seed))
				c.program(w, true)
				if err := w.finish(); err != nil {
					t.Fatalf("the right program: %v", err)
				}
				w = newWorld(t, newPlatform(seed))
				c.program(w, false)
				err := w.finish()
				var h *emulated.Hazard
				if !errors.As(err, &h) || h.Kind != c.kind {
					t.Fatalf("%v, want: %v", err, c.kind)
				}
				text := err.Error()
				if first := strings.Index(text, c.first); first < 0 || !strings.Contains(text, c.second) {
					t.Errorf("%v\nwant it to name %q and %q", text, c.first, c.second)
				}
				if err := w.a.Synchronize(); err == nil || err.Error() != text {
					t.Errorf("the next call returned %v", err)
				}
			}
		})
	}
}

// late returns a platform on which operations run when they are needed, and no earlier.
func late() *emulated.Platform {
	for seed := uint64(1); ; seed++ {
		p := newPlatform(seed)
		d, _ := p.Open(0)
		s, _ := d.NewStream("s")
		m, _ := d.Alloc("m", 400)
		for i := range 100 {
			_ = s.Fill(gpu.Part(m, 4*i, 4), 0)
		}
		if p.Pending() == 100 && d.Close() == nil {
			return p
		}
	}
}

// TestSlicesKept: a program that keeps the slice of pinned memory is found out when the bytes
// change before a copy reads them or has written them, and reads NaN if it reads them early.
func TestSlicesKept(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func(w *world)
		where   string
	}{
		{"upload", func(w *world) {
			kept := w.write()
			w.copy(w.a, w.x, w.in)
			kept[5]++
		}, `"in"[0:64]`},
		{"download", func(w *world) {
			kept := try[[]byte](w)(w.out.Writing(0, 64))
			w.copy(w.a, w.out, w.x)
			kept[5]++
		}, `"out"[0:64]`},
	} {
		w := newWorld(t, late())
		c.program(w)
		var h *emulated.Hazard
		if err := w.finish(); !errors.As(err, &h) || h.Kind != emulated.Touched || h.Where != c.where || !strings.Contains(h.Second, "copy of") {
			t.Errorf("%s: %v", c.name, err)
		}
	}

	w := newWorld(t, late())
	kept := gpu.As[float32](w.look())
	w.copy(w.a, w.out, w.x)
	if !math.IsNaN(float64(kept[3])) {
		t.Errorf("a result that was read early is %v", kept[3])
	}
	if err := w.finish(); err != nil || math.Float32bits(kept[3]) != 1 {
		t.Errorf("then it is %v, %v", kept[3], err)
	}

	// A buffer that is sent on by the device itself is not the host's meanwhile.
	w = newWorld(t, late())
	w.fill(w.a, w.x)
	w.copy(w.a, w.out, w.x)
	w.copy(w.a, w.y, w.out)
	w.fill(w.a, w.x)
	w.copy(w.a, w.out, w.x)
	if err := w.finish(); err != nil {
		t.Error(err)
	}
}

// TestBlocksInAnyOrder: a kernel whose blocks depend on one another computes something
// else with another seed.
func TestBlocksInAnyOrder(t *testing.T) {
	results := map[string]bool{}
	for seed := range uint64(10) {
		w := newWorld(t, newPlatform(seed))
		w.try(w.a.Launch(try[gpu.Kernel](w)(w.m.Kernel("chain")), gpu.Linear(15, 1), gpu.Update(gpu.All(w.x))))
		w.copy(w.a, w.out, w.x)
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		results[fmt.Sprint(w.look())] = true
	}
	if len(results) < 2 {
		t.Error("the blocks ran in the same order ten times")
	}
}

// TestTwoGoroutines: a call during a call is found. Here a kernel makes one.
func TestTwoGoroutines(t *testing.T) {
	var d gpu.Device
	p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<20), Images: map[string]emulated.Kernels{
		"i": {"k": {Run: func(*emulated.Block) { _, _ = d.NewStream("inner") }}},
	}})
	d, _ = p.Open(0)
	s, _ := d.NewStream("outer")
	m, _ := d.Load(gpu.Image{Name: "i"})
	k, _ := m.Kernel("k")
	_ = s.Launch(k, gpu.Linear(1, 1))
	if err := s.Synchronize(); err == nil || !strings.Contains(err.Error(), "two goroutines") || !strings.Contains(err.Error(), `NewStream "inner"`) {
		t.Error(err)
	}
}

// TestLate: which of two operations runs first, if nothing orders them, depends on the seed; with seed 0
// operations run when they are enqueued.
func TestLate(t *testing.T) {
	first, second, pending := 0, 0, 0
	for seed := range uint64(40) {
		w := newWorld(t, newPlatform(seed))
		w.fill(w.a, w.x)
		w.try(w.a.Record(w.e))
		w.fill(w.b, w.y)
		w.try(w.b.Record(w.f))
		if n := w.p.Pending(); n > 0 {
			pending++
			if seed == 0 {
				t.Errorf("seed 0: %d operations are pending", n)
			}
		}
		w.try(w.near.Synchronize())
		if try[time.Duration](w)(w.f.Since(w.e)) > 0 {
			first++
		} else {
			second++
		}
		if w.err != nil {
			t.Fatal(w.err)
		}
	}
	if first < 5 || second < 5 || pending < 10 {
		t.Errorf("%d times the first was first, %d times the second, %d times some were pending", first, second, pending)
	}
}
