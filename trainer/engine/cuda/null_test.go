package cuda_test

import (
	"strings"
	"testing"
	"time"

	"aibox/gpu"
	"aibox/internal/testseed"
	"aibox/trainer/engine"
)

// nothing is a platform with devices that do nothing but set and copy single words, and need
// nothing for it: what is left of a step is the work of the host.
type nothing struct{ calls *calls }

// calls counts those of streams, and sums over devices.
type calls struct {
	launches, runs, captures int
	copies, fills            int
	records, waits           int // of events, by streams
	synchronizes             int // of events, by the host
	updates, moves           int // launches that update parameters, and that copy matrices
	sums, beside             int // all, and those that are not in the stream that computes
}

type (
	noDevice struct {
		number int
		calls  *calls
	}
	noMemory struct{ data []byte }
	noStream struct {
		dev  noDevice
		name string
	}
	noEvent  struct{ calls *calls }
	noModule struct{}
	noKernel struct{ name string }
	noGraph  struct{ of *noStream }
	noGroup  struct{ calls *calls }
)

func (nothing) Name() string                            { return "nothing" }
func (nothing) Devices() []gpu.Info                     { return make([]gpu.Info, 4) }
func (nothing) Link(int, int) gpu.Link                  { return gpu.LinkHost }
func (p nothing) Open(number int) (gpu.Device, error)   { return noDevice{number, p.calls}, nil }
func (p nothing) Group([]gpu.Device) (gpu.Group, error) { return noGroup(p), nil }
func (g noGroup) AllReduce(streams []gpu.Stream, _ []gpu.Region) error {
	g.calls.sums++
	if streams[0].Name() != "compute" {
		g.calls.beside++
	}
	return nil
}

func (d noDevice) Number() int                             { return d.number }
func (noDevice) Info() gpu.Info                            { return gpu.Info{} }
func (noDevice) Alloc(_ string, n int) (gpu.Memory, error) { return &noMemory{make([]byte, n)}, nil }
func (noDevice) AllocPinned(_ string, n int) (gpu.Pinned, error) {
	return &noMemory{make([]byte, n)}, nil
}
func (noDevice) FreeMemory() (free, total int64, err error)  { return 0, 0, nil }
func (d noDevice) NewStream(name string) (gpu.Stream, error) { return &noStream{d, name}, nil }
func (d noDevice) NewEvent(string) (gpu.Event, error)        { return noEvent{d.calls}, nil }
func (noDevice) Load(gpu.Image) (gpu.Module, error)          { return noModule{}, nil }
func (noDevice) Synchronize() error                          { return nil }
func (noDevice) Close() error                                { return nil }

func (*noMemory) Name() string                         { return "" }
func (m *noMemory) Bytes() int                         { return len(m.data) }
func (*noMemory) Free() error                          { return nil }
func (m *noMemory) Reading(at, n int) ([]byte, error)  { return m.data[at:][:n], nil }
func (m *noMemory) Writing(at, n int) ([]byte, error)  { return m.data[at:][:n], nil }
func (noModule) Kernel(n string) (gpu.Kernel, error)   { return noKernel{n}, nil }
func (k noKernel) Name() string                        { return k.name }
func (noEvent) Name() string                           { return "" }
func (noEvent) Done() (bool, error)                    { return true, nil }
func (e noEvent) Synchronize() error                   { e.calls.synchronizes++; return nil }
func (noEvent) Since(gpu.Event) (time.Duration, error) { return 0, nil }
func (noGraph) Name() string                           { return "" }
func (noGraph) Free() error                            { return nil }
func (s *noStream) Name() string                       { return s.name }
func (s *noStream) Device() gpu.Device                 { return s.dev }
func (*noStream) Multiply(gpu.Product) error           { return nil }
func (*noStream) Fuses(gpu.Product) (bool, error)      { return false, nil }
func (*noStream) PrepareProducts() error               { return nil }
func (s *noStream) Record(gpu.Event) error             { s.dev.calls.records++; return nil }
func (s *noStream) Wait(gpu.Event) error               { s.dev.calls.waits++; return nil }
func (*noStream) Synchronize() error                   { return nil }
func (s *noStream) Copy(to, from gpu.Region) error {
	s.dev.calls.copies++
	if to.Bytes() == 4 {
		copy(to.Memory.(*noMemory).data[to.Offset:][:4], from.Memory.(*noMemory).data[from.Offset:])
	}
	return nil
}
func (s *noStream) Fill(r gpu.Region, word uint32) error {
	s.dev.calls.fills++
	if r.Bytes() == 4 {
		gpu.As[uint32](r.Memory.(*noMemory).data[r.Offset:][:4])[0] = word
	}
	return nil
}
func (s *noStream) Run(g gpu.Graph) error {
	if g.(noGraph).of != s {
		return gpu.Invalid("the graph was captured in another stream")
	}
	s.dev.calls.runs++
	return nil
}
func (s *noStream) Launch(k gpu.Kernel, _ gpu.Geometry, _ ...gpu.Arg) error {
	s.dev.calls.launches++
	switch name := k.Name(); {
	case strings.HasPrefix(name, "optimize_"):
		s.dev.calls.updates++
	case name == "copy_rows":
		s.dev.calls.moves++
	}
	return nil
}
func (s *noStream) Capture(_ string, enqueue func() error) (gpu.Graph, error) {
	s.dev.calls.captures++
	return noGraph{s}, enqueue()
}

// TestNoGarbage wants a step of training, with its rows, to allocate nothing.
func TestNoGarbage(t *testing.T) {
	for i, precision := range []engine.Precision{engine.Float32, engine.BF16, engine.Float32} {
		for n := 1; n <= 2; n++ {
			b := newBench(t, setup{spec: deep(true), dense: adam, precision: precision, held: i == 2, seed: testseed.Of(t), batches: 4, examples: 64})
			e := b.open(t, nothing{new(calls)}, devices(n))
			b.begin(t)
			step := func() {
				for i := range b.pass.Batches {
					if err := e.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
						t.Fatal(err)
					}
					if err := e.Infer(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 3 { // until all sizes have occurred in all slots
				step()
			}
			if garbage := testing.AllocsPerRun(10, step); garbage > 0 && !raceEnabled {
				t.Errorf("%v on %d devices: %v allocations in 8 steps", precision, n, garbage)
			}
		}
	}
}

// TestGraphs: steps whose shape has occurred before are enqueued as graphs alone, of which there
// are as many as devices wait for one another, and copy results, in between; graphs are made anew
// where memory has moved.
func TestGraphs(t *testing.T) {
	for _, c := range []struct {
		norm    bool
		devices int
		graphs  int // of a step
	}{{false, 1, 2}, {true, 1, 2}, {false, 2, 2 * 3}, {true, 2, 2 * 9}, {true, 3, 3 * 9}} { // two normalizations, three sums each
		b := newBench(t, setup{spec: deep(c.norm), dense: adam, seed: testseed.Of(t), batches: 2, examples: 64})
		p := nothing{new(calls)}
		e := b.open(t, p, devices(c.devices))
		b.begin(t)
		train := func(steps int) calls {
			before := *p.calls
			for i := range steps {
				if err := e.Train(engine.Batch{Batch: &b.pass.Batches[i%2]}, func(*engine.Result) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			return calls{launches: p.calls.launches - before.launches, runs: p.calls.runs - before.runs, captures: p.calls.captures - before.captures}
		}
		first := train(2)
		train(6)
		now := train(2)
		if first.runs > 0 || first.launches == 0 || now != (calls{runs: 2 * c.graphs}) {
			t.Errorf("%+v: %+v in the first steps, later %+v", c, first, now)
		}
		if err := e.Import(); err != nil {
			t.Fatal(err)
		}
		if again := train(2); again.runs > 0 {
			t.Errorf("%+v: graphs outlive Import: %+v", c, again)
		}
	}
}
