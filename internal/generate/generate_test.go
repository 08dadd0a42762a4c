package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/internal/score"
)

// criteoLike is a model of the shape of Criteo's logs.
func criteoLike() Config {
	cfg := Config{Seed: 1, DenseColumns: 13, BaseRate: 0.05, LinearStrength: 1, InteractionStrength: 0.5, LatentDim: 4, MissingRate: 0.1}
	for i := range 26 {
		cfg.Fields = append(cfg.Fields, Field{Name: fmt.Sprintf("c%d", i+1), Cardinality: []int64{10, 1000, 100_000, 1_000_000_000}[i%4], Skew: 1.05})
	}
	return cfg
}

// small is quick to calibrate.
func small() Config {
	return Config{
		Seed: 9, DenseColumns: 2, BaseRate: 0.2, LinearStrength: 1, InteractionStrength: 0.8, LatentDim: 3, DriftPerDay: 0.1, MissingRate: 0.2,
		Fields: []Field{{Name: "a", Cardinality: 50, Skew: 0.8}, {Name: "b", Cardinality: 1 << 40, Skew: 1}, {Name: "c", Cardinality: 200, Skew: 1.2, MaxValues: 5}},
	}
}

func mustNew(t testing.TB, cfg Config) *Generator {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// collect copies the examples of a request into one block.
func collect(t testing.TB, g *Generator, req Request) *Block {
	t.Helper()
	all := &Block{Day: req.Day, First: req.First, Offsets: []int32{0}}
	next := req.First
	err := g.Generate(context.Background(), req, func(b *Block) error {
		if b.First != next || b.Day != req.Day {
			t.Errorf("block of day %d, first %d; want day %d, %d", b.Day, b.First, req.Day, next)
		}
		next += int64(b.N)
		all.N += b.N
		all.Labels = append(all.Labels, b.Labels...)
		all.Logits = append(all.Logits, b.Logits...)
		all.Dense = append(all.Dense, b.Dense...)
		all.Missing = append(all.Missing, b.Missing...)
		for _, o := range b.Offsets[1:] {
			all.Offsets = append(all.Offsets, int32(len(all.Values))+o)
		}
		all.Values = append(all.Values, b.Values...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if int64(all.N) != req.Count {
		t.Fatalf("%d examples, want %d", all.N, req.Count)
	}
	return all
}

func join(t *testing.T, a, b *Block) *Block {
	c := &Block{
		Day: a.Day, First: a.First, N: a.N + b.N, Labels: slices.Concat(a.Labels, b.Labels), Logits: slices.Concat(a.Logits, b.Logits),
		Dense: slices.Concat(a.Dense, b.Dense), Missing: slices.Concat(a.Missing, b.Missing), Values: slices.Concat(a.Values, b.Values),
		Offsets: slices.Clone(a.Offsets),
	}
	for _, o := range b.Offsets[1:] {
		c.Offsets = append(c.Offsets, int32(len(a.Values))+o)
	}
	return c
}

// TestThreadsAndRangesLeaveNoTrace: example i of a day is the same whoever
// draws it, in whichever range, before or after other days.
func TestThreadsAndRangesLeaveNoTrace(t *testing.T) {
	const n = 10_000
	g := mustNew(t, small())
	want := collect(t, g, Request{Day: 2, Count: n, Threads: 1})
	for _, threads := range []int{0, 2, 7} {
		if got := collect(t, g, Request{Day: 2, Count: n, Threads: threads}); !reflect.DeepEqual(got, want) {
			t.Errorf("%d threads give other examples", threads)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	other := mustNew(t, small()) // calibrated by one thread, days in another order
	for day := 9; day > 2; day-- {
		collect(t, other, Request{Day: day, Count: 1})
	}
	tail := collect(t, other, Request{Day: 2, First: 4097, Count: n - 4097, Threads: 3})
	head := collect(t, other, Request{Day: 2, Count: 4097, Threads: 2})
	if !reflect.DeepEqual(join(t, head, tail), want) {
		t.Error("two ranges give other examples than one")
	}
	for _, change := range []func(*Config){func(c *Config) { c.Seed++ }, func(c *Config) { c.Fields[1].Skew += 0.01 }} {
		cfg := small()
		change(&cfg)
		if got := collect(t, mustNew(t, cfg), Request{Day: 2, Count: n}); reflect.DeepEqual(got.Values, want.Values) {
			t.Error("another configuration gives the same examples")
		}
	}
	if got := collect(t, g, Request{Day: 3, Count: n}); reflect.DeepEqual(got.Values, want.Values) {
		t.Error("another day gives the same examples")
	}
}

// TestGolden fixes what is drawn: a change here changes every generated log,
// and so does a processor that computes otherwise.
func TestGolden(t *testing.T) {
	b := collect(t, mustNew(t, small()), Request{Day: 5, First: 1000, Count: 2000})
	h := uint64(0)
	for i := range b.N {
		h = hash(h, math.Float64bits(b.Logits[i]), uint64(b.Labels[i]))
	}
	for _, v := range b.Values {
		h = hash(h, v)
	}
	for _, x := range b.Dense {
		h = hash(h, uint64(x))
	}
	const want = 0x7872bdfc49ecf3cd
	if h != want {
		t.Errorf("digest of examples %#x, want %#x", h, uint64(want))
	}
}

func TestBlocks(t *testing.T) {
	cfg := small()
	g := mustNew(t, cfg)
	const n = 20_000
	b := collect(t, g, Request{Count: n})
	F := len(cfg.Fields)
	var empty, missing, longest float64
	seen := map[uint64]bool{}
	for e := range n {
		for f, field := range cfg.Fields {
			bag := b.Values[b.Offsets[e*F+f]:b.Offsets[e*F+f+1]]
			if len(bag) == 0 {
				empty++
			}
			if len(bag) > max(1, field.MaxValues) {
				t.Fatalf("%d values of %d", len(bag), field.MaxValues)
			}
			longest = max(longest, float64(len(bag)))
			for i, v := range bag {
				if v >= uint64(field.Cardinality) || slices.Contains(bag[:i], v) {
					t.Fatalf("field %s of cardinality %d has %v", field.Name, field.Cardinality, bag)
				}
				if f == 1 {
					seen[v] = true
				}
			}
		}
	}
	for i, x := range b.Dense {
		if b.Missing[i] {
			missing++
			if x != 0 {
				t.Fatalf("a missing number is %v", x)
			}
		} else if x < 0 || float64(x) != math.Floor(float64(x)) {
			t.Fatalf("dense value %v", x)
		}
	}
	if rate := empty / n / float64(F); math.Abs(rate-cfg.MissingRate) > 0.01 {
		t.Errorf("%.3f of the bags are empty", rate)
	}
	if rate := missing / n / float64(cfg.DenseColumns); math.Abs(rate-cfg.MissingRate) > 0.015 {
		t.Errorf("%.3f of the numbers are missing", rate)
	}
	if longest != 5 || len(seen) < 1000 {
		t.Errorf("longest bag %v, %d different values of 2^40", longest, len(seen))
	}
}

// TestPopularity: what comes out of a generator follows the law too, ids
// standing for ranks.
func TestPopularity(t *testing.T) {
	const n, cardinality, skew = 60_000, 5000, 1.1
	g := mustNew(t, Config{Seed: 3, BaseRate: 0.5, LinearStrength: 1, Fields: []Field{{Name: "f", Cardinality: cardinality, Skew: skew}}})
	b := collect(t, g, Request{Count: n})
	counts := map[uint64]float64{}
	for _, v := range b.Values {
		counts[v]++
	}
	all := zipfSum(skew, 1, cardinality)
	for rank := uint64(1); rank <= 30; rank++ {
		want := n * math.Pow(float64(rank), -skew) / all
		if got := counts[g.fields[0].ids.at(rank-1)]; math.Abs(got-want) > 4.5*math.Sqrt(want) {
			t.Errorf("rank %d: %v times, want %.0f", rank, got, want)
		}
	}
}

// TestStrengths: the parts of the logit have the standard deviations asked for
// on examples that were not used to calibrate, the pairwise part cannot be had
// from single features, and the base rate holds, on later days too.
func TestStrengths(t *testing.T) {
	cfg := small()
	cfg.Fields[1].Cardinality = 300
	g := mustNew(t, cfg)
	const n = 60_000
	for _, number := range []int{0, 3} {
		d := g.day(number)
		linear, pairwise := make([]float64, n), make([]float64, n)
		// Mean of the pairwise part given a feature, for the 3 first ranks of
		// field a; all of them are 0 for an interaction proper.
		var given, count [4]float64
		e := g.newExample()
		for i := range n {
			r := stream(hash(cfg.Seed, forExample, uint64(number), uint64(i)))
			g.drawFeatures(&r, e)
			linear[i] = g.linearScale * g.linearPart(d, e)
			pairwise[i] = g.pairwiseScale * g.pairwisePart(d, e)
			if e.ends[0] == 1 && e.ranks[0] <= 3 {
				given[e.ranks[0]] += pairwise[i]
				count[e.ranks[0]]++
			}
		}
		for _, p := range []struct {
			name   string
			values []float64
			want   float64
			tol    float64
		}{{"linear", linear, cfg.LinearStrength, 0.02}, {"pairwise", pairwise, cfg.InteractionStrength, 0.04}} {
			if number > 0 {
				p.tol = 0.5 // the scales are day 0's; popular features weigh much
			}
			if got := standardDeviation(p.values); math.Abs(got-p.want) > p.tol {
				t.Errorf("day %d: the %s part has standard deviation %.3f, want %v", number, p.name, got, p.want)
			}
		}
		for rank := 1; rank <= 3; rank++ {
			if mean := given[rank] / count[rank]; math.Abs(mean) > 4.5*1.5*cfg.InteractionStrength/math.Sqrt(count[rank])+0.01 {
				t.Errorf("day %d: given rank %d of field a, the pairwise part has mean %.3f", number, rank, mean)
			}
		}
		m := NewMeter()
		if err := g.Generate(context.Background(), Request{Day: number, Count: n}, func(b *Block) error { m.Add(b); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := float64(m.Truth().MeanProbability); math.Abs(got-cfg.BaseRate) > 0.004 {
			t.Errorf("day %d: mean probability %.4f, want %v", number, got, cfg.BaseRate)
		}
		if got := float64(m.Truth().BaseRate); math.Abs(got-cfg.BaseRate) > 0.008 {
			t.Errorf("day %d: base rate %.4f, want %v", number, got, cfg.BaseRate)
		}
	}
}

// TestTruth: the true probabilities are the best there is.
func TestTruth(t *testing.T) {
	g := mustNew(t, small())
	const n = 60_000
	m := NewMeter()
	var noisy, linearOnly score.Loss
	var exact, noisyAUC score.Exact
	err := g.Generate(context.Background(), Request{Count: n}, func(b *Block) error {
		m.Add(b)
		for i, z := range b.Logits {
			r := stream(b.First + int64(i))
			y := b.Labels[i] == 1
			worse := z + 0.5*normal(r.next())
			noisy.Add(score.NewTerm(worse, y), 1)
			linearOnly.Add(score.NewTerm(0.7*z, y), 1)
			exact.Add(float32(z), y, 1)
			noisyAUC.Add(float32(worse), y, 1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	truth := m.Truth()
	if truth.Examples != n || float64(truth.Positives)/n != float64(truth.BaseRate) {
		t.Errorf("%+v", truth)
	}
	if d := math.Abs(float64(truth.AUC) - exact.AUC()); d > float64(truth.AUCError)+1e-6 || truth.AUCError > 1e-3 {
		t.Errorf("AUC is %v off, bound %v", d, truth.AUCError)
	}
	if !(float64(truth.AUC) > 0.7 && float64(truth.AUC) > noisyAUC.AUC()+0.005) {
		t.Errorf("AUC %v, with noise %v", truth.AUC, noisyAUC.AUC())
	}
	if ll := float64(truth.LogLoss); !(ll < noisy.LogLoss()-0.005 && ll < linearOnly.LogLoss()-0.001) {
		t.Errorf("log loss %v, with noise %v, with shrunk logits %v", ll, noisy.LogLoss(), linearOnly.LogLoss())
	}
	// A label's loss has standard deviation below 1 here.
	if d := math.Abs(float64(truth.LogLoss - truth.ExpectedLogLoss)); d > 4.5/math.Sqrt(n) {
		t.Errorf("log loss %v, expected %v", truth.LogLoss, truth.ExpectedLogLoss)
	}
	if truth.NormalizedEntropy >= 1 {
		t.Errorf("normalized entropy %v", truth.NormalizedEntropy)
	}
	if got, want := entropyOf(-1), -(0.2689414213699951*math.Log(0.2689414213699951) + 0.7310585786300049*math.Log(0.7310585786300049)); math.Abs(got-want) > 1e-15 {
		t.Errorf("entropy of logit -1 is %v, want %v", got, want)
	}
	if e := NewMeter().Truth(); e.AUC.Defined() || e.LogLoss.Defined() || e.ExpectedLogLoss.Defined() {
		t.Errorf("truth of nothing: %+v", e)
	}
}

// TestDriftAges: yesterday's model is worse today, an older one worse still.
func TestDriftAges(t *testing.T) {
	g := mustNew(t, small())
	const n = 30_000
	today := g.day(20)
	auc := func(number int) float64 {
		old := g.day(number)
		var x score.Exact
		e := g.newExample()
		for i := range n {
			r := stream(hash(g.cfg.Seed, forExample, 20, uint64(i)))
			g.drawFeatures(&r, e)
			y := unit(r.next()) < 1/(1+math.Exp(-g.logit(today, e)))
			x.Add(float32(g.logit(old, e)), y, 1)
		}
		return x.AUC()
	}
	if now, before, long := auc(20), auc(19), auc(0); !(now > before+0.002 && before > long+0.02) {
		t.Errorf("AUC with the model of the day %.4f, of the day before %.4f, of 20 days before %.4f", now, before, long)
	}
}

// TestMemoryDoesNotGrow with cardinality or the number of examples.
func TestMemoryDoesNotGrow(t *testing.T) {
	cfg := criteoLike()
	for i := range cfg.Fields {
		cfg.Fields[i].Cardinality = 1_000_000_000_000
		cfg.Fields[i].Skew = 0.5
	}
	cfg.InteractionStrength = 0
	g := mustNew(t, cfg)
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first, last uint64
	blocks := 0
	err := g.Generate(context.Background(), Request{Count: 40_000, Threads: 2}, func(*Block) error {
		if blocks++; blocks == 6 { // all the memory that is used again has been used
			first = inUse()
		}
		last = inUse()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if last > first+4<<20 || last > 64<<20 {
		t.Errorf("%d bytes in use after 6 blocks, %d after %d", first, last, blocks)
	}
}

func TestGenerateStops(t *testing.T) {
	g := mustNew(t, small())
	before := runtime.NumGoroutine()
	broken := errors.New("disk full")
	calls := 0
	err := g.Generate(context.Background(), Request{Count: 1 << 40, Threads: 3}, func(*Block) error {
		if calls++; calls == 3 {
			return broken
		}
		return nil
	})
	if err != broken || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; strings.Contains(string(stacks), "Generator).fill") {
		t.Errorf("examples are still being drawn after Generate has returned:\n%s", stacks)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = g.Generate(ctx, Request{Count: 1 << 40, Threads: 3}, func(*Block) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v after cancel", err)
	}
	for _, req := range []Request{{Day: -1, Count: 1}, {First: -1, Count: 1}, {Count: -1}, {First: math.MaxInt64, Count: 1}} {
		if err := g.Generate(context.Background(), req, nil); err == nil {
			t.Errorf("no error for %+v", req)
		}
	}
	if err := g.Generate(context.Background(), Request{}, nil); err != nil {
		t.Errorf("no examples: %v", err)
	}
	for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

func TestConfigFaults(t *testing.T) {
	nan := math.NaN()
	_, err := New(Config{
		Fields:   []Field{{Cardinality: 0, Skew: -1, MaxValues: -2}, {Name: "x", Cardinality: 1}, {Name: "x", Cardinality: 1 << 60, Skew: nan}},
		BaseRate: 1, LinearStrength: nan, InteractionStrength: 1, DenseColumns: -1, DriftPerDay: 2, MissingRate: 1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, says := range []string{
		"field 0 has no name", "cardinality 0", "skew -1", "max_values -2", `fields 1 and 2 are both called "x"`, "skew NaN",
		"base_rate 1", "linear_strength NaN", "dense_columns -1", "latent_dim 0", "drift_per_day 2", "missing_rate 1",
	} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q:\n%v", says, err)
		}
	}
	for name, cfg := range map[string]Config{
		"nothing to draw": {BaseRate: 0.5},
		"nothing varies":  {BaseRate: 0.5, LinearStrength: 1, Fields: []Field{{Name: "a", Cardinality: 1}}},
		"too skewed":      {BaseRate: 0.5, LinearStrength: 1, Fields: []Field{{Name: "a", Cardinality: 2, Skew: 50}}},
		"no pairs":        {BaseRate: 0.5, InteractionStrength: 1, LatentDim: 2, DenseColumns: 3, Fields: []Field{{Name: "a", Cardinality: 9}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(Config{BaseRate: 0.5, DenseColumns: 1, LinearStrength: 1}); err != nil {
		t.Errorf("dense columns alone: %v", err)
	}
}

func TestAppendValue(t *testing.T) {
	g := mustNew(t, Config{BaseRate: 0.5, Fields: []Field{{Name: "a", Cardinality: 1 << 32}, {Name: "b", Cardinality: 1<<32 + 1}}})
	for _, c := range []struct {
		field int
		id    uint64
		want  string
	}{{0, 0, "00000000"}, {0, 15, "0000000f"}, {0, 16, "00000010"}, {0, 0xdeadbeef, "deadbeef"}, {1, 0, "0000000000000000"}, {1, 1 << 32, "0000000100000000"}} {
		if got := string(g.AppendValue([]byte("x"), c.field, c.id)); got != "x"+c.want {
			t.Errorf("value %d of field %d is %q, want %q", c.id, c.field, got[1:], c.want)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, drift := range []float64{0, 0.02} {
		b.Run(fmt.Sprintf("drift=%v", drift), func(b *testing.B) {
			cfg := criteoLike()
			cfg.DriftPerDay = drift
			g := mustNew(b, cfg)
			m := NewMeter()
			b.ResetTimer()
			for i := range b.N {
				if err := g.Generate(context.Background(), Request{Day: 1, First: int64(i) * 40_960, Count: 40_960, Threads: 1}, func(x *Block) error { m.Add(x); return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*40_960*60/b.Elapsed().Seconds(), "examples/min")
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for range b.N {
		mustNew(b, criteoLike())
	}
}
