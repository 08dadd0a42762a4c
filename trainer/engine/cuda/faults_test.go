package cuda_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels/twin"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
)

// TestFaults makes each call, and then each operation, fail, by one kind of failure in turn, in
// short mode every fifth. All that follows from that is an error, at the latest of Export, and the
// values of rows are those after a whole number of steps or, if they are on the devices, those
// before the pass unless all steps were taken. No later call works, and none hangs, panics, or uses
// memory without an order.
func TestFaults(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held=", held), func(t *testing.T) { testFaults(t, held) })
	}
}

func testFaults(t *testing.T, held bool) {
	seed := testseed.Of(t)
	s := setup{spec: deep(true), dense: adam, seed: seed, batches: 4, examples: 12, held: held, format: sparsetable.BFloat16, decay: 0.1}
	s.spec.HiddenLayers = []int{6}
	if testing.Short() {
		s.batches = 3
	}
	for n := 1; n <= 2; n++ {
		// The values of rows after each step, and how many calls and operations there are.
		var after [][]float32
		good := newBench(t, s)
		p := platform(n, seed)
		whole := useDevices(t, good, p, n, func() { after = append(after, good.values()["rows"]) })
		if whole.err != nil {
			t.Fatal(whole.err)
		}
		for _, of := range []struct {
			what  string
			count int
			fail  func(*emulated.Platform, int, gpu.Kind)
			kinds []gpu.Kind
		}{
			{"call", whole.calls, (*emulated.Platform).FailCall, []gpu.Kind{gpu.OutOfMemory, gpu.LaunchFailed, gpu.DeviceLost}},
			{"operation", whole.operations, (*emulated.Platform).FailOperation, []gpu.Kind{gpu.LaunchFailed, gpu.DeviceLost}},
		} {
			for i := 1; i <= of.count; i++ {
				for k, kind := range of.kinds {
					if !testseed.EveryFault() && (k != (i+int(seed%6))%len(of.kinds) || testing.Short() && i%5 != 1) {
						continue
					}
					what := fmt.Sprintf("%d devices, %v in %s %d of %d", n, kind, of.what, i, of.count)
					b := newBench(t, s)
					p := platform(n, seed+uint64(i))
					of.fail(p, i, kind)
					used := useDevices(t, b, p, n, func() {})
					if err := p.Err(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					reached := i <= map[string]int{"call": used.calls, "operation": used.operations}[of.what] // else another order had fewer
					if held && used.err == nil && (kind == gpu.OutOfMemory || !reached) {                     // less memory was enough
						if !slices.Equal(b.values()["rows"], good.values()["rows"]) {
							t.Fatalf("%s: the rows are wrong", what)
						}
						continue
					}
					var e *gpu.Error
					if !errors.As(used.err, &e) {
						t.Fatalf("%s: error %v", what, used.err)
					}
					if b.rows == nil {
						continue
					}
					rows := b.values()["rows"]
					if held {
						if used.results < s.batches-1 && !slices.Equal(rows, after[0]) {
							t.Fatalf("%s: after %d results the rows have changed", what, used.results)
						}
						continue
					}
					if at := slices.IndexFunc(after, func(a []float32) bool { return slices.Equal(a, rows) }); at < 0 || at < used.results || at > used.results+1 {
						t.Fatalf("%s: after %d results the rows are those after %d steps", what, used.results, at)
					}
				}
			}
		}
	}
}

// used is how the use of an engine ended.
type used struct {
	err               error
	results           int // of training
	calls, operations int // but for those of Close
}

// useDevices trains, infers and exports with an engine that it makes, and closes it. It calls
// step before the first step and after each.
func useDevices(t *testing.T, b *bench, p *emulated.Platform, n int, step func()) (u used) {
	t.Helper()
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: devices(n), RowsOnDevice: b.held})
	if err != nil {
		return used{err: err}
	}
	defer func() {
		u.calls, u.operations = p.Calls(), p.Operations()
		if u.err != nil { // and stays so
			if e.Train(engine.Batch{Batch: &b.pass.Batches[0]}, nil) == nil || e.Infer(engine.Batch{Batch: &b.pass.Batches[0]}, nil) == nil ||
				e.Begin(engine.Pass{}) == nil || e.Export() == nil || e.Import() == nil || e.Check() == nil {
				t.Errorf("a call works after %v", u.err)
			}
		}
		if err := e.Close(); err != nil {
			u.err = errors.Join(u.err, err)
		}
	}()
	if b.rows == nil {
		if b.rows, err = b.table.Pull(t.Context(), b.pass.Keys, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Begin(engine.Pass{Keys: b.pass.Keys, Rows: b.rows}); err != nil {
		u.err = err
		return u
	}
	step()
	for i := range b.pass.Batches {
		if err = e.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { u.results++; return nil }); err != nil {
			break
		}
		step()
	}
	for i := 0; i < len(b.pass.Batches) && err == nil; i++ {
		err = e.Infer(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil })
	}
	if end := e.End(); err == nil {
		err = end
	}
	if err == nil && p.Pending() > 0 {
		t.Errorf("End leaves %d operations, which may fail", p.Pending())
	}
	for _, do := range []func() error{e.Check, e.Export} {
		if now := do(); err == nil {
			err = now
		}
	}
	u.err = err
	return u
}

// TestOutOfMemory checks that the error says how many bytes there is no room for, and what would
// need less, and that the engine can be closed.
func TestOutOfMemory(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, seed: seed, batches: 2, examples: 300}
	for _, c := range []struct {
		device, pinned, products int64
		devices                  int
		says                     string
	}{
		{4 << 10, 0, 0, 1, "parameters of the model"},
		{30 << 10, 0, 0, 1, "mini-batch of 300 examples; a smaller training.batch_size needs less (`aibox config check` says which fits)"},
		{30 << 10, 0, 0, 2, "its 150 examples of a mini-batch of 300; a smaller training.batch_size"},
		{30 << 10, 0, 28 << 10, 2, "for matrix products"},
		{1 << 30, 10 << 10, 0, 1, "mini-batch of 300 examples; a smaller training.batch_size"},
	} {
		b := newBench(t, s)
		infos := emulated.Devices(c.devices, c.device)
		for i := range infos {
			infos[i].ProductBytes = c.products
		}
		p := emulated.New(emulated.Options{Devices: infos, PinnedBytes: c.pinned, Images: twin.Images(), Seed: seed})
		err := useDevices(t, b, p, c.devices, func() {}).err
		var e *gpu.Error
		if !errors.As(err, &e) || e.Kind != gpu.OutOfMemory || errkind.Of(t.Context(), err) != errkind.Job {
			t.Fatalf("%v", err)
		}
		if text := err.Error(); !strings.Contains(text, c.says) || !strings.Contains(text, fmt.Sprintf(" %d bytes", e.Asked)) {
			t.Errorf("the error does not say %q: %s", c.says, text)
		}
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	}
}

// TestMemory checks that memory grows to the size of the largest mini-batch, and that the engine
// reports what it has.
func TestMemory(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, seed: seed, batches: 3, examples: 90}
	b := newBench(t, s)
	slices.Reverse(b.pass.Batches) // the smallest is first
	p := platform(2, seed)
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: devices(2)})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	b.begin(t)
	var sizes []int64
	for i := range b.pass.Batches {
		b.train(t, i, i+1)
		sizes = append(sizes, e.DeviceBytes())
	}
	b.end(t)
	if sizes[0] >= sizes[1] {
		t.Errorf("device memory after each step: %d", sizes)
	}
	if e.MemoryBytes() < int64(4*90*len(b.pass.Batches[2].Dense)/90) {
		t.Error("no host memory")
	}
	if err := errors.Join(e.Close(), p.Err()); err != nil {
		t.Error(err)
	}
}
