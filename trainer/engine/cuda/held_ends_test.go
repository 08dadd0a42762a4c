package cuda_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/panics"
	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
)

// passSequence has passes with a mini-batch each, whose rows are pinned, for an engine with a
// device.
type passSequence struct {
	*bench
	engine *cuda.Engine
	p      *emulated.Platform
	passes []*pinned
}

func newPassSequence(t *testing.T, seed uint64, keys ...int) *passSequence {
	t.Helper()
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed, examples: 10}
	x := &passSequence{bench: newBench(t, s), p: platform(1, seed)}
	var err error
	if x.engine, err = cuda.New(x.config, &x.state, cuda.Options{Platform: x.p, Devices: []int{0}, RowsOnDevice: true}); err != nil {
		t.Fatal(err)
	}
	examples := make([]int, len(keys))
	for i := range examples {
		examples[i] = s.examples
	}
	for _, of := range randomPasses(rand.New(rand.NewPCG(seed, 1)), s, keys, examples, 0).passes {
		p, err := x.pin(of.Pass)
		if err != nil {
			t.Fatal(err)
		}
		x.passes = append(x.passes, p)
	}
	return x
}

func (x *passSequence) begin(i int) error { return x.engine.Begin(x.passes[i].Pass) }

func (x *passSequence) announce(i int) error {
	p := x.passes[i].Pass
	p.Ended = nil
	return x.engine.Announce(p)
}

func (x *passSequence) infer(i int, done engine.Done) error {
	return x.engine.Infer(engine.Batch{Batch: &x.passes[i].Batches[0]}, done)
}

// ended fails the test unless the engine uses no rows any more but those of the passes that the
// caller has to release, which did not begin.
func (x *passSequence) ended(t *testing.T, waiting ...int) {
	t.Helper()
	for _, i := range waiting {
		x.passes[i].Ended()
	}
	if n := x.table.Stats().PinnedSets; n != 0 {
		t.Errorf("%d sets are pinned in the end", n)
	}
	if err := errors.Join(x.engine.Close(), x.p.Err()); err != nil {
		t.Error(err)
	}
}

func ignored(*engine.Result) error { return nil }

// TestHeldPassesWithdrawnInFlight checks that memory is replaced by that of a larger pass only when
// rows of a withdrawn pass that are being copied have arrived.
func TestHeldPassesWithdrawnInFlight(t *testing.T) {
	seed := testseed.Of(t)
	for i := range uint64(10) {
		x := newPassSequence(t, seed+i, 100, 2000, 6000)
		err := errors.Join(x.begin(0), x.announce(1))
		for range 3 {
			time.Sleep(2 * time.Millisecond) // for the plan, and then for the copies of the host
			err = errors.Join(err, x.infer(0, ignored))
		}
		err = errors.Join(err, x.engine.End())
		x.engine.Withdraw()
		if err := errors.Join(err, x.begin(2), x.infer(2, ignored), x.engine.End()); err != nil {
			t.Fatal(err)
		}
		x.ended(t, 1)
	}
}

// TestHeldPassesWithdrawnBroken checks that if Export fails, Withdraw still ends the use of the
// rows of the announced pass.
func TestHeldPassesWithdrawnBroken(t *testing.T) {
	seed := testseed.Of(t)
	for call := 1; ; call++ {
		x := newPassSequence(t, seed, 20, 30)
		if err := errors.Join(x.begin(0), x.announce(1), x.infer(0, ignored), x.engine.End()); err != nil {
			t.Fatal(err)
		}
		x.p.FailCall(call, gpu.DeviceLost)
		err := x.engine.Export()
		x.p.FailCall(0, 0)
		x.engine.Withdraw()
		if x.engine.Announced() {
			t.Errorf("call %d: after Withdraw there is an announced pass", call)
		}
		x.ended(t, 1)
		if err == nil {
			return
		}
	}
}

// TestHeldPassesPanic checks that after a panic of the function that gets the last result, the rows
// of no pass are in use.
func TestHeldPassesPanic(t *testing.T) {
	seed := testseed.Of(t)
	for _, announced := range []bool{false, true} {
		x := newPassSequence(t, seed, 20, 30)
		err := x.begin(0)
		if announced {
			err = errors.Join(err, x.announce(1))
		}
		if err := errors.Join(err, x.infer(0, func(*engine.Result) error { panic("of a test") })); err != nil {
			t.Fatal(err)
		}
		var panicked *panics.Error
		if err := x.engine.End(); !errors.As(err, &panicked) {
			t.Errorf("the error is %v", err)
		}
		x.engine.Withdraw()
		x.ended(t, 1)
	}
}

// TestHeldPassesUse checks that the reported use of a device includes the rows of a pass that stay
// for the next one.
func TestHeldPassesUse(t *testing.T) {
	x := newPassSequence(t, testseed.Of(t), 3000, 3000)
	for i := range x.passes {
		if err := x.begin(i); err != nil {
			t.Fatal(err)
		}
		if err := x.infer(i, ignored); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := x.announce(1); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.engine.End(); err != nil {
			t.Fatal(err)
		}
		if got, want := x.engine.Stats()[0].UsedBytes, inUse(t, x.p, 0); got != want || x.engine.Announced() != (i == 0) {
			t.Errorf("after pass %d %d bytes are said to be in use, and %d are", i, got, want)
		}
	}
	x.ended(t)
}
