package cuda_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
)

// randomPasses are a night of passes with so many keys each, and one mini-batch of so many examples.
func randomPasses(rng *rand.Rand, s setup, keys, examples []int, announce int) *night {
	n := &night{universe: slices.Max(keys) * 5 / 4}
	for i := range keys {
		p := nightPass{Pass: new(reader.Pass), announce: announce}
		for _, k := range rng.Perm(n.universe)[:keys[i]] {
			p.Keys = append(p.Keys, uint64(k)*0x10001+1)
		}
		s.examples = examples[i]
		p.Batches = []reader.Batch{randomBatch(rng, s, min(100, keys[i]))}
		n.passes = append(n.passes, p)
	}
	return n
}

// TestHeldPassesNoWorse checks that passes for which there is enough memory without announcements
// also fit if they are announced, even if a later one has much larger mini-batches.
func TestHeldPassesNoWorse(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed}
	for _, numbers := range [][]int{{0}, {0, 1}} {
		if testing.Short() && len(numbers) == 1 {
			continue
		}
		night := func(announce int) *night {
			return randomPasses(rand.New(rand.NewPCG(seed, 1)), s, []int{500, 500, 3000, 1}, []int{1, 300, 20, 200}, announce)
		}
		early, never := night(0), night(9)
		want, _, peak, err := nightOn(t, s, never, numbers, 1<<30, seed)
		if err != nil {
			t.Fatal(err)
		}
		least, enough := int64(0), 3*peak // of each device, for passes that are not announced
		for enough-least > peak/100 {
			bytes := (least + enough) / 2
			if _, _, _, err := nightOn(t, s, never, numbers, bytes, seed); err == nil {
				enough = bytes
			} else if least = bytes; !errors.Is(err, gpu.OutOfMemory) {
				t.Fatal(err)
			}
		}
		for bytes := enough; bytes < 2*enough; bytes += bytes / 16 {
			got, _, _, err := nightOn(t, s, early, numbers, bytes, seed+uint64(bytes))
			if err != nil {
				t.Fatalf("devices %v: %d bytes, of which %d are enough: %v", numbers, bytes, enough, err)
			}
			sameNight(t, got, want)
		}
	}
}

// refusing is an engine whose device refuses a call of an announcement.
type refusing struct {
	*cuda.Engine
	p     *emulated.Platform
	call  int
	calls int // so far; 0: nothing was announced
}

func (r *refusing) Announce(p engine.Pass) error {
	before := r.p.Calls()
	r.p.FailCall(r.call, gpu.OutOfMemory)
	err := r.Engine.Announce(p)
	r.p.FailCall(0, 0)
	r.calls = r.p.Calls() - before
	return err
}

// TestHeldPassesRefused checks that whatever memory a device refuses when a pass is announced, the
// current pass continues, and its rows are copied back to the host. The announced pass is copied to
// the device later.
func TestHeldPassesRefused(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed, format: sparsetable.BFloat16}
	n := randomPasses(rand.New(rand.NewPCG(seed, 1)), s, []int{600, 6000}, []int{20, 20}, 0)
	want, _, _, err := nightOn(t, s, n, []int{0, 1}, 1<<30, seed)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for call := 1; ; call++ {
		if testing.Short() {
			call += 4
		}
		p := platform(2, seed+uint64(call))
		b := newBench(t, s)
		e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: []int{0, 1}, RowsOnDevice: true})
		if err != nil {
			t.Fatal(err)
		}
		r := &refusing{Engine: e, p: p, call: call}
		b.engine = r
		got, err := b.live(n)
		if held := errors.Join(e.Close(), p.Err()); held != nil {
			t.Fatal(held)
		}
		if err == nil {
			sameNight(t, got, want)
			refused++
		} else if !errors.Is(err, gpu.OutOfMemory) { // if the call was not one for memory
			t.Fatalf("call %d: %v", call, err)
		}
		if call > r.calls {
			break
		}
	}
	if refused < 5 {
		t.Errorf("only %d refusals did not end the night", refused)
	}
}

// TestHeldPassTooLarge checks that the error for a pass that does not fit says how many rows would
// fit: passes of a little fewer rows fit, and those of more do not.
func TestHeldPassTooLarge(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed}
	for _, numbers := range [][]int{{0}, {0, 1}, {0, 0}, {1, 0, 1}} {
		pass := func(rows int, bytes int64) error {
			n := randomPasses(rand.New(rand.NewPCG(seed, 1)), s, []int{rows}, []int{20}, 0)
			_, _, _, err := nightOn(t, s, n, numbers, bytes, seed)
			return err
		}
		const bytes = 1 << 20
		err := pass(100_000, bytes)
		if !errors.Is(err, gpu.OutOfMemory) {
			t.Fatalf("a pass of 100,000 rows fits %d bytes: %v", bytes, err)
		}
		_, after, _ := strings.Cut(err.Error(), "a pass has 100000 rows, but only about ")
		figure, _, _ := strings.Cut(after, " fit into the memory of engine.devices")
		rows, cannot := strconv.Atoi(figure)
		if cannot != nil {
			t.Fatalf("the error does not say how many rows fit: %v", err)
		}
		if err := pass(rows*9/10, bytes); err != nil {
			t.Errorf("devices %v: %d rows should fit, but %d do not: %v", numbers, rows, rows*9/10, err)
		}
		if err := pass(rows*5/4, bytes); !errors.Is(err, gpu.OutOfMemory) {
			t.Errorf("devices %v: at most %d rows should fit, but %d do: %v", numbers, rows, rows*5/4, err)
		}
	}
}

// TestHeldPassCrowded checks that if there is no room for the rows or mini-batches of a pass
// because other programs use much of the device, the error says so.
func TestHeldPassCrowded(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed}
	for _, rows := range []int{10, 100_000} {
		for _, others := range []bool{false, true} {
			free, bytes := int64(300<<10), int64(300<<10)
			if others {
				bytes = 1 << 20
			}
			p := emulated.New(optionsOf(1, bytes, 4<<10, seed))
			if err := p.Occupy(0, free); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, s)
			e := b.open(t, p, []int{0})
			n := randomPasses(rand.New(rand.NewPCG(seed, 1)), s, []int{rows}, []int{20}, 0)
			if rows == 10 { // it is the bags that do not fit
				randomBags(rand.New(rand.NewPCG(seed, 2)), &n.passes[0].Batches[0], 3000)
			}
			_, err := b.live(n)
			if !errors.Is(err, gpu.OutOfMemory) || strings.Contains(err.Error(), "the driver and other programs, such as another job, use 724.0 KiB of its 1.0 MiB") != others {
				t.Errorf("%d rows, with other programs %v: %v", rows, others, err)
			}
			if err := errors.Join(e.Close(), p.Err()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHeldPassWithoutPinned checks that the error for a pass for whose copies the host has no
// pinned memory does not mention how many rows the devices have room for.
func TestHeldPassWithoutPinned(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: seed}
	o := optionsOf(1, 1<<30, 4<<10, seed)
	o.PinnedBytes = 300 << 10
	p := emulated.New(o)
	_, _, _, err := nightOnPlatform(t, s, randomPasses(rand.New(rand.NewPCG(seed, 1)), s, []int{100_000}, []int{20}, 0), []int{0}, p)
	if !errors.Is(err, gpu.OutOfMemory) || !strings.Contains(err.Error(), "bytes of pinned memory for the copies of rows") || strings.Contains(err.Error(), "fit into the memory of engine.devices") {
		t.Errorf("%v", err)
	}
}

// TestHeldPassesReserved checks that what Begin reserves suffices for the mini-batches of a pass,
// even if most of their features are those of one row, which is on one device, or those of a few
// examples.
func TestHeldPassesReserved(t *testing.T) {
	rng := testseed.Rand(t)
	s := setup{spec: deep(false), dense: adam, held: true, seed: 1, examples: 200}
	for n := 1; n <= 4; n++ {
		for _, first := range []int{0, 90} { // of the examples that have these features
			b := newBench(t, s)
			batch := randomBatch(rng, s, 100)
			batch.Index, batch.Offsets = nil, []int32{0}
			for bag := range batch.N * len(s.spec.Fields) {
				for range 1 + 60*min(1, bag/(1+len(s.spec.Fields)*first)) {
					batch.Index = append(batch.Index, int32(min(bag, len(batch.Rows)-1)))
				}
				batch.Offsets = append(batch.Offsets, int32(len(batch.Index)))
			}
			batch.Invert(len(batch.Rows))
			b.pass = &reader.Pass{Batches: []reader.Batch{batch}}
			for i := range 100 {
				b.pass.Keys = append(b.pass.Keys, uint64(i))
			}
			p := platform(n, 1)
			e := b.open(t, p, devices(n))
			b.begin(t)
			device, host := e.DeviceBytes(), e.MemoryBytes()
			b.trainFirst(t, 1)
			if err := e.End(); err != nil {
				t.Fatal(err)
			}
			if more := e.DeviceBytes() - device; more != 0 {
				t.Errorf("%d devices: the mini-batch takes %d bytes more than what was reserved", n, more)
			}
			if more := e.MemoryBytes() - host; more > 4<<10 { // which lists of rows take
				t.Errorf("%d devices: the mini-batch takes %d bytes of the host more than what was reserved", n, more)
			}
			if err := errors.Join(e.Close(), p.Err()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFullDevice checks that the end of a pass, the check of parameters and an export need no
// memory of a device, since rows may have taken all of it.
func TestFullDevice(t *testing.T) {
	for _, held := range []bool{false, true} {
		p := multiplying(2, 16<<20, 64<<10, 1)
		b := newBench(t, setup{spec: deep(true), dense: adam, held: held, seed: testseed.Of(t), batches: 1, examples: 20})
		e := b.open(t, p, devices(2))
		b.begin(t)
		b.trainFirst(t, 1)
		for d := range 2 {
			other, err := p.Open(d)
			if err != nil {
				t.Fatal(err)
			}
			free, _, err := other.FreeMemory()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Alloc("all the rest", int(free)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(e.End(), e.Check(), e.Export(), e.Import()); err != nil {
			t.Errorf("rows on the devices %v: %v", held, err)
		}
		if err := errors.Join(e.Close(), p.Err()); err != nil {
			t.Error(err)
		}
	}
}
