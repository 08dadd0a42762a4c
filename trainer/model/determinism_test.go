package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"runtime/debug"
	"testing"

	"aibox/internal/kernel"

	"gorgonia.org/gorgonia"
)

// digest hashes the bits of numbers.
func digest(slices ...[]float32) string {
	var bits []byte
	for _, s := range slices {
		bits = binary.LittleEndian.AppendUint64(bits, uint64(len(s)))
		for _, v := range s {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(v))
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(bits))
}

// state hashes everything that a step can have changed.
func state(m *Model, res Result) string {
	all := [][]float32{res.Logits, res.RowGrads, {float32(res.Loss)}}
	for _, p := range m.Params() {
		all = append(all, p.Data, p.Grad)
	}
	for _, p := range m.Buffers() {
		all = append(all, p.Data)
	}
	return digest(all...)
}

// wide enlarges a spec until its ops are worth several threads.
func wide(s Spec) Spec {
	s.EmbeddingDim = 16
	if len(s.HiddenLayers) > 0 {
		s.HiddenLayers = []int{70, 40}
	}
	if s.Kind == KindDCN || s.Kind == KindDCNv2 {
		s.CrossRank *= 9
	}
	if len(s.Dense) > 0 && s.Kind == KindDLRM {
		s.BottomLayers = []int{40, 16}
	}
	return s
}

// TestThreadsAndLevels trains every model for two steps with one thread and
// several, another GOMAXPROCS, and every instruction set level, and wants the same bits.
func TestThreadsAndLevels(t *testing.T) { eachPrecision(t, testThreadsAndLevels) }

func testThreadsAndLevels(t *testing.T) {
	steps := func(spec Spec) string {
		rng := rand.New(rand.NewSource(5))
		m := mustNew(t, spec)
		perturb(rng, m)
		in := randomInputs(rng, spec, 401, 150)
		var last string
		for range 2 {
			in.Step++
			res, err := m.Train(in)
			if err != nil {
				t.Fatal(err)
			}
			last += state(m, res)
			descend(m, in, res, 0.1)
		}
		return last
	}
	level, procs := kernel.Level(), runtime.GOMAXPROCS(0)
	defer func() {
		kernel.SetThreads(0)
		runtime.GOMAXPROCS(procs)
		if err := kernel.SetLevel(level); err != nil {
			t.Error(err)
		}
	}()
	for name, spec := range Examples() {
		spec = wide(spec)
		kernel.SetThreads(1)
		want := steps(spec)
		const threads = 4
		kernel.SetThreads(threads)
		runtime.GOMAXPROCS(threads)
		if got := steps(spec); got != want {
			t.Errorf("%s: %d threads give %s, one gives %s", name, threads, got, want)
		}
		runtime.GOMAXPROCS(procs)
		for _, l := range kernel.Levels() {
			if l == level || testing.Short() { // levels have nothing to do with races
				continue
			}
			if err := kernel.SetLevel(l); err != nil {
				t.Fatal(err)
			}
			if got := steps(spec); got != want {
				t.Errorf("%s: level %s gives %s, %s gives %s", name, l, got, level, want)
			}
		}
		if err := kernel.SetLevel(level); err != nil {
			t.Fatal(err)
		}
	}
}

// descend is one step of plain gradient descent on parameters and rows.
func descend(m *Model, in *Inputs, res Result, rate float32) {
	for _, p := range m.Params() {
		for i, g := range p.Grad {
			p.Data[i] -= float32(rate * g)
		}
	}
	for i, g := range res.RowGrads {
		in.Rows[i] -= float32(rate * g)
	}
}

// TestNothingStays checks that what a call returns depends on that call alone:
// not on gradients, results and mini-batches of other sizes before it.
func TestNothingStays(t *testing.T) { eachPrecision(t, testNothingStays) }

func testNothingStays(t *testing.T) {
	for name, spec := range Examples() {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t, 21)
			m := mustNew(t, spec)
			perturb(rng, m)
			in, other, small := randomInputs(rng, spec, 13, 20), randomInputs(rng, spec, 13, 31), randomInputs(rng, spec, 4, 3)
			start := saveBuffers(m)
			train := func(in *Inputs) string {
				start()
				res, err := m.Train(in)
				if err != nil {
					t.Fatal(err)
				}
				return state(m, res)
			}
			infer := func(in *Inputs) string {
				start()
				logits, err := m.Infer(in)
				if err != nil {
					t.Fatal(err)
				}
				return digest(logits)
			}
			trained, inferred := train(in), infer(in)
			for i, before := range []func(){
				func() {},
				func() { train(other) },
				func() { train(small); infer(other) },
				func() { poison(m) },
			} {
				before()
				if got := train(in); got != trained {
					t.Errorf("case %d: Train gives %s, before it gave %s", i, got, trained)
				}
				before()
				if got := infer(in); got != inferred {
					t.Errorf("case %d: Infer gives %s, before it gave %s", i, got, inferred)
				}
			}
		})
	}
}

// saveBuffers returns a function that puts the buffers back as they are now.
func saveBuffers(m *Model) func() {
	var saved [][]float32
	for _, p := range m.Buffers() {
		saved = append(saved, append([]float32(nil), p.Data...))
	}
	return func() {
		for i, p := range m.Buffers() {
			copy(p.Data, saved[i])
		}
	}
}

// poison fills everything that was computed, gradients among it, with NaN.
func poison(m *Model) {
	nan := float32(math.NaN())
	m.machine().Poison()
	for _, p := range m.Params() {
		for i := range p.Grad {
			p.Grad[i] = nan
		}
	}
}

// TestBatchSizeDoesNotMatter infers examples together and in mini-batches of
// other sizes and wants the same bits for each.
func TestBatchSizeDoesNotMatter(t *testing.T) { eachPrecision(t, testBatchSizeDoesNotMatter) }

func testBatchSizeDoesNotMatter(t *testing.T) {
	for name, spec := range Examples() {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t, 31)
			m := mustNew(t, spec)
			perturb(rng, m)
			in := randomInputs(rng, spec, 11, 9)
			all, err := m.Infer(in)
			if err != nil {
				t.Fatal(err)
			}
			want := append([]float32(nil), all...)
			for _, size := range []int{1, 4} {
				for lo := 0; lo < in.N; lo += size {
					hi := min(lo+size, in.N)
					got, err := m.Infer(part(in, spec, lo, hi))
					if err != nil {
						t.Fatal(err)
					}
					for i, z := range got {
						if math.Float32bits(z) != math.Float32bits(want[lo+i]) {
							t.Fatalf("example %d: %g in mini-batches of %d, %g in one of %d", lo+i, z, size, want[lo+i], in.N)
						}
					}
				}
			}
		})
	}
}

// part is examples [lo, hi) of a mini-batch, with all its rows.
func part(in *Inputs, spec Spec, lo, hi int) *Inputs {
	f, p := len(spec.Fields), len(spec.Dense)
	from, to := in.Offsets[lo*f], in.Offsets[hi*f]
	out := &Inputs{N: hi - lo, Rows: in.Rows, Index: in.Index[from:to], Dense: in.Dense[lo*p : hi*p], Step: in.Step}
	for _, o := range in.Offsets[lo*f : hi*f+1] {
		out.Offsets = append(out.Offsets, o-from)
	}
	if in.BagWeights != nil {
		out.BagWeights = in.BagWeights[from:to]
	}
	return out
}

// TestGraphIsOurs checks that a differentiated graph holds nothing but ops of
// package ops and one constant.
func TestGraphIsOurs(t *testing.T) {
	for name, spec := range Examples() {
		m := mustNew(t, spec)
		c, err := compile(spec, 4, true, m.params, m.buffers)
		if err != nil {
			t.Fatal(err)
		}
		constants := 0
		for _, n := range c.graph.AllNodes() {
			if n.Op() == nil {
				continue
			}
			if n.Op().Arity() == 0 {
				constants++
			} else if _, ok := n.Op().(gorgonia.UsePreallocDoer); ok {
				t.Errorf("%s: %v would be given memory by the machine", name, n.Op())
			}
		}
		if constants != 1 {
			t.Errorf("%s: %d constants", name, constants)
		}
	}
}

// TestNoGarbage wants steps after the first one to allocate nothing.
func TestNoGarbage(t *testing.T) { eachPrecision(t, testNoGarbage) }

func testNoGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	for name, spec := range Examples() {
		m := mustNew(t, spec)
		rng := newRand(t, 87)
		in := m.inverted(randomInputs(rng, spec, 1000, 50))
		if garbage := testing.AllocsPerRun(5, func() {
			if _, err := m.machine().Train(in); err != nil {
				t.Fatal(err)
			}
			if _, err := m.machine().Infer(in); err != nil {
				t.Fatal(err)
			}
		}); garbage > 0 {
			t.Errorf("%s: %v allocations in a step", name, garbage)
		}
	}
}
