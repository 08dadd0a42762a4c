package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/engine/devicerows"
	"aibox/trainer/optim"
)

// night is passes that share rows, and how they follow one another.
type night struct {
	universe int
	passes   []nightPass
}

type nightPass struct {
	*reader.Pass
	infers    bool
	announce  int  // the mini-batch before which the next pass is announced; that behind the last one: before End; more: it is not
	withdrawn bool // the next pass is withdrawn, and begins by itself later
	exports   bool
}

// randomNight draws passes with most of their keys from the same part of all.
func randomNight(rng *rand.Rand, s setup, passes, universe int) *night {
	n := &night{universe: universe}
	for range passes {
		p := nightPass{Pass: new(reader.Pass), infers: rng.IntN(5) == 0, withdrawn: rng.IntN(6) == 0, exports: rng.IntN(4) == 0}
		lo := rng.IntN(universe / 2)
		for _, k := range rng.Perm(universe - lo)[:1+rng.IntN(universe-lo)] {
			p.Keys = append(p.Keys, uint64(k+lo)*0x10001+1)
		}
		for range 1 + rng.IntN(3) {
			p.Batches = append(p.Batches, randomBatch(rng, s, len(p.Keys)))
		}
		p.announce = rng.IntN(len(p.Batches) + 3)
		n.passes = append(n.passes, p)
	}
	return n
}

// randomBatch draws a mini-batch that refers to some of so many rows.
func randomBatch(rng *rand.Rand, s setup, rows int) reader.Batch {
	b := reader.Batch{N: s.examples, Offsets: []int32{0}}
	for _, r := range rng.Perm(rows)[:1+rng.IntN(rows)] {
		b.Rows = append(b.Rows, int32(r))
	}
	for range b.N {
		b.Labels = append(b.Labels, float32(rng.IntN(2)))
		for range s.spec.Dense {
			b.Dense = append(b.Dense, float32(rng.NormFloat64()))
		}
		for range s.spec.Fields {
			b.Index = append(b.Index, int32(rng.IntN(len(b.Rows))))
			b.Offsets = append(b.Offsets, int32(len(b.Index)))
		}
	}
	b.Invert(len(b.Rows))
	if rng.IntN(4) > 0 {
		b.SetMade()
	}
	return b
}

// pinned is a pass whose rows are pinned, until they are released.
type pinned struct {
	engine.Pass
	released int
}

func (b *bench) pin(of *reader.Pass) (*pinned, error) {
	rows, err := b.table.Pull(context.Background(), of.Keys, sparsetable.PullCreate|sparsetable.PullAhead)
	if err != nil {
		return nil, err
	}
	p := &pinned{Pass: engine.Pass{Keys: of.Keys, Rows: rows, Batches: of.Batches}}
	p.Ended = func() {
		p.released++
		rows.Release()
	}
	return p, nil
}

// entry is the result of a mini-batch or, whenever all of them must be there, all parameters and rows.
type entry struct {
	step   int64
	loss   float64
	logits []float32

	tensors map[string][]float32
	words   string // of the rows of the table, to the bit
	values  []float32
	stats   []sparsetable.RowStats
}

// live goes through a night, and returns what comes of it.
func (b *bench) live(n *night) (log []entry, err error) {
	var next *pinned
	defer func() {
		if next != nil {
			b.engine.Withdraw()
			next.Rows.Release()
		}
	}()
	for i := range n.passes {
		p := &n.passes[i]
		now := next
		if now == nil {
			if now, err = b.pin(p.Pass); err != nil {
				return log, err
			}
		}
		next = nil
		now.Rows.Begin()
		if err := b.engine.Begin(now.Pass); err != nil {
			now.Rows.Release()
			return log, err
		}
		announce := func(at int) error {
			if at != p.announce || i+1 == len(n.passes) {
				return nil
			}
			var err error
			if next, err = b.pin(n.passes[i+1].Pass); err != nil {
				return err
			}
			return b.engine.Announce(engine.Pass{Keys: next.Keys, Rows: next.Rows, Batches: next.Batches})
		}
		do := b.engine.Train
		if p.infers {
			do = b.engine.Infer
		}
		for k := 0; k <= len(p.Batches) && err == nil; k++ {
			if err = announce(k); err == nil && k < len(p.Batches) {
				err = do(engine.Batch{Batch: &p.Batches[k]}, func(r *engine.Result) error {
					log = append(log, entry{step: r.Step, loss: r.Loss, logits: slices.Clone(r.Logits)})
					return nil
				})
			}
		}
		if end := b.engine.End(); err == nil {
			err = end
		}
		if err != nil {
			return log, err
		}
		if next != nil && p.withdrawn {
			b.engine.Withdraw()
			next.Rows.Release()
			next = nil
		}
		if next == nil && now.released != 1 {
			return log, fmt.Errorf("pass %d was released %d times", i, now.released)
		}
		if p.exports || i+1 == len(n.passes) {
			if err := b.engine.Export(); err != nil {
				return log, err
			}
			all, err := b.everything(n)
			if err != nil {
				return log, err
			}
			log = append(log, all)
			if now.released != 1 {
				return log, fmt.Errorf("pass %d was released %d times after an export", i, now.released)
			}
		}
	}
	return log, nil
}

// everything is all parameters, and all rows of a night that the table has.
func (b *bench) everything(n *night) (e entry, err error) {
	keys := make([]uint64, n.universe)
	for i := range keys {
		keys[i] = uint64(i)*0x10001 + 1
	}
	rows, err := b.table.Pull(context.Background(), keys, sparsetable.PullLookup)
	if err != nil {
		return e, err
	}
	defer rows.Release()
	var text []byte
	for i := range keys {
		text = fmt.Appendln(text, i, rows.Found(i), rows.Row(i))
		if rows.Found(i) {
			values := make([]float32, b.layout.ValueDim)
			b.layout.LoadValues(values, rows.Row(i))
			e.values, e.stats = append(e.values, values...), append(e.stats, b.layout.Stats(rows.Row(i)))
		}
	}
	e.tensors, e.words = b.tensors(), string(text)
	return e, nil
}

// nightOn is a night on devices with so many bytes of memory each.
func nightOn(t *testing.T, s setup, n *night, numbers []int, bytes int64, seed uint64) (log []entry, rows devicerows.Traffic, peak int64, err error) {
	t.Helper()
	if s.images == nil {
		s.images = twin.Images()
	}
	p := emulated.New(emulated.Options{Devices: emulated.Devices(slices.Max(numbers)+1, bytes), Images: s.images, Seed: seed})
	return nightOnPlatform(t, s, n, numbers, p)
}

func nightOnPlatform(t *testing.T, s setup, n *night, numbers []int, p *emulated.Platform) (log []entry, rows devicerows.Traffic, peak int64, err error) {
	t.Helper()
	b := newBench(t, s)
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: numbers, RowsOnDevice: s.held})
	if err != nil {
		return nil, rows, 0, err
	}
	b.engine = e
	log, err = b.live(n)
	if s.held {
		for d := range numbers {
			of := e.Stats()[d].Rows
			rows.Uploaded += of.Uploaded
			rows.Late += of.Late
			rows.Kept += of.Kept
			rows.Downloaded += of.Downloaded
		}
	}
	peak = e.DeviceBytes()
	if err == nil && len(numbers) == 1 && !s.fails {
		if used := inUse(t, p, numbers[0]); used != peak {
			t.Fatalf("%d bytes of the device are in use, and the engine knows of %d", used, peak)
		}
	}
	if held := errors.Join(e.Close(), p.Err()); held != nil {
		t.Fatal(held)
	}
	if pinned := b.table.Stats().PinnedSets; pinned != 0 {
		t.Fatalf("%d sets are pinned in the end, after the error %v", pinned, err)
	}
	return log, rows, peak, err
}

// sameNight fails the test unless both are the same.
func sameNight(t *testing.T, got, want []entry) {
	t.Helper()
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%d of %d entries, and from number %d on they are\n%.2000s\nwant\n%.2000s", len(got), len(want), i, fmt.Sprint(got[min(i, len(got)):]), fmt.Sprint(want[i:]))
		}
	}
}

func nightSetup(i int, seed uint64) setup {
	s := setup{spec: deep(i%3 == 1), dense: adam, seed: seed, examples: 12, admitted: i%2 == 0}
	s.format = []sparsetable.ValueFormat{sparsetable.Float32, sparsetable.BFloat16}[i%2]
	if i%4 > 1 {
		s.decay = 0.3
	}
	return s
}

// TestHeldPasses: passes that share rows give the same bits as with rows on the host, however late
// they are announced, and with exports and withdrawals in between. Rows that two passes share are
// not copied.
func TestHeldPasses(t *testing.T) {
	seed := testseed.Of(t)
	var sum devicerows.Traffic
	nights := 12
	if testing.Short() {
		nights = 6
	}
	for i := range nights {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		numbers := [][]int{{0}, {0, 1}, {0, 0, 1}, devices(8)}[i%4]
		t.Run(fmt.Sprint(i, numbers), func(t *testing.T) {
			s := nightSetup(i, seed+uint64(i))
			n := randomNight(rng, s, 8, []int{40, 3000}[i%2])
			want, _, _, err := nightOn(t, s, n, numbers, 1<<30, seed)
			if err != nil {
				t.Fatal(err)
			}
			s.held = true
			got, rows, _, err := nightOn(t, s, n, numbers, 1<<30, seed+uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			sameNight(t, got, want)
			sum.Uploaded += rows.Uploaded
			sum.Late += rows.Late
			sum.Kept += rows.Kept
		})
	}
	if sum.Kept < sum.Uploaded/50 || sum.Late == sum.Uploaded {
		t.Errorf("few rows were kept, or copied before their pass began: %+v", sum)
	}
}

// TestHeldPassesTraffic: rows that a pass shares with the one before are copied neither up nor
// down, and others while mini-batches are trained, if there are enough of these: the worker that
// copies needs a processor now and then.
func TestHeldPassesTraffic(t *testing.T) {
	seed := testseed.Of(t)
	for _, numbers := range [][]int{{0}, {0, 1, 2}} {
		if testing.Short() && len(numbers) > 1 {
			continue
		}
		want, rows := devicerows.Traffic{}, devicerows.Traffic{}
		for batches := 100; batches <= 1600; batches *= 2 {
			if rows, want = traffic(t, seed, numbers, batches); rows.Late == want.Late {
				break
			}
		}
		if rows != want {
			t.Errorf("devices %v: %+v, want %+v", numbers, rows, want)
		}
	}
}

// traffic is that of passes of so many mini-batches that share rows, and what it should be.
func traffic(t *testing.T, seed uint64, numbers []int, batches int) (rows, want devicerows.Traffic) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	s := nightSetup(0, seed)
	s.held = true
	const passes, keys, fresh = 4, 1200, 400
	n := &night{universe: keys + passes*fresh}
	for i := range passes {
		p := nightPass{Pass: new(reader.Pass)}
		for k := range keys {
			p.Keys = append(p.Keys, uint64(i*fresh+k)*0x10001+1)
		}
		for range batches {
			p.Batches = append(p.Batches, randomBatch(rng, s, 40))
		}
		n.passes = append(n.passes, p)
	}
	_, rows, _, err := nightOn(t, s, n, numbers, 1<<30, 0) // operations run when they are enqueued
	if err != nil {
		t.Fatal(err)
	}
	return rows, devicerows.Traffic{
		Uploaded: keys + (passes-1)*fresh, Late: keys, Kept: (passes - 1) * (keys - fresh), Downloaded: (passes-1)*fresh + keys,
	}
}

// TestHeldPassesTight: with less and less memory, passes have to wait until the one before has
// left, which changes no bits, until one of them does not fit alone.
func TestHeldPassesTight(t *testing.T) {
	seed := testseed.Of(t)
	for i, numbers := range [][]int{{0}, {0, 1}} {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		s := nightSetup(i, seed)
		s.held = true
		n := randomNight(rng, s, 6, 3000)
		for p := range n.passes { // half of the rows of each are in the next one, too
			keys := n.passes[p].Keys[:0]
			for k := range 1000 {
				keys = append(keys, uint64(500*p+k)%3000*0x10001+1)
			}
			n.passes[p].Keys, n.passes[p].announce = keys, 0
			for k := range n.passes[p].Batches {
				n.passes[p].Batches[k] = randomBatch(rng, s, len(keys))
			}
		}
		want, least, peak, err := nightOn(t, s, n, numbers, 1<<30, seed)
		if err != nil {
			t.Fatal(err)
		}
		waited := false
		for bytes := peak; ; bytes -= peak / 24 {
			got, rows, _, err := nightOn(t, s, n, numbers, bytes, seed+uint64(bytes))
			if errors.Is(err, gpu.OutOfMemory) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			sameNight(t, got, want)
			waited = waited || rows.Kept < least.Kept
		}
		if !waited {
			t.Errorf("devices %v: no pass had to wait", numbers)
		}
	}
}

// TestHeldPassesFaults: a call that fails, at any place (of which a run of the test tries some),
// ends the night with its error, and all rows are released.
func TestHeldPassesFaults(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := setup{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, held: true, seed: seed, examples: 4}
	n := randomNight(rng, s, 4, 30)
	for i := range n.passes {
		n.passes[i].announce, n.passes[i].infers, n.passes[i].withdrawn = 0, false, i == 2
	}
	stride := 15
	if testing.Short() {
		stride = 60
	}
	if testseed.EveryFault() {
		stride = 1
	}
	for at := 1; ; at++ {
		p := platform(2, seed+uint64(at))
		p.FailCall(at, gpu.DeviceLost)
		b := newBench(t, s)
		e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: []int{0, 1}, RowsOnDevice: true})
		if err == nil {
			b.engine = e
			_, err = b.live(n)
			if h := p.Err(); h != nil {
				t.Fatal(h)
			}
			_ = e.Close()
		}
		if pinned := b.table.Stats().PinnedSets; pinned != 0 {
			t.Fatalf("call %d: %d sets are pinned in the end, after the error %v", at, pinned, err)
		}
		if err == nil {
			if at < 100 {
				t.Fatalf("only %d calls", at)
			}
			return
		}
		if !errors.Is(err, gpu.DeviceLost) {
			t.Fatalf("call %d: %v", at, err)
		}
		at += rng.IntN(stride)
	}
}
