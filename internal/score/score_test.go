package score

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

type example struct {
	logit    float32
	positive bool
	weight   float32
	group    uint64
}

// bruteAUC looks at all pairs.
func bruteAUC(list []example) float64 {
	var won, all float64
	for _, p := range list {
		for _, n := range list {
			if !p.positive || n.positive {
				continue
			}
			w := float64(p.weight) * float64(n.weight)
			all += w
			switch {
			case p.logit > n.logit:
				won += w
			case p.logit == n.logit:
				won += w / 2
			}
		}
	}
	return won / all
}

// draw makes n examples; levels > 0 rounds the logits to that many values, so
// that there are ties.
func draw(rng *rand.Rand, n, levels int, weights []float32) []example {
	list := make([]example, n)
	for i := range list {
		positive := rng.Float64() < 0.3
		x := rng.NormFloat64()
		if positive {
			x += 0.7
		}
		if levels > 0 {
			x = math.Round(x*float64(levels)/6) * 6 / float64(levels)
		}
		list[i] = example{float32(x), positive, weights[rng.IntN(len(weights))], rng.Uint64N(20)}
	}
	return list
}

func exactOf(list []example) float64 {
	var e Exact
	for _, x := range list {
		e.Add(x.logit, x.positive, x.weight)
	}
	return e.AUC()
}

func near(a, b, tol float64) bool { return a == b || math.Abs(a-b) <= tol || (a != a && b != b) }

func TestExactAgainstAllPairs(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, weights := range [][]float32{{1}, {1, 2, 5}, {0.1, 0.25, 1, 3.5, 0}} {
		for _, levels := range []int{0, 3, 30} {
			for _, n := range []int{2, 5, 40, 700} {
				list := draw(rng, n, levels, weights)
				got, want := exactOf(list), bruteAUC(list)
				if !near(got, want, 1e-13) {
					t.Errorf("weights %v, levels %d, n %d: AUC %v, all pairs say %v", weights, levels, n, got, want)
				}
				rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
				if again := exactOf(list); math.Float64bits(again) != math.Float64bits(got) && got == got {
					t.Errorf("another order of examples gives %v instead of %v", again, got)
				}
			}
		}
	}
}

func TestExactByHand(t *testing.T) {
	inf := float32(math.MaxFloat32)
	negZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name     string
		pos, neg []float32
		want     float64
	}{
		{"perfect", []float32{2, 3}, []float32{-1, 1}, 1},
		{"reversed", []float32{-2, -3}, []float32{-1, 1}, 0},
		{"all tied", []float32{1, 1, 1}, []float32{1, 1}, 0.5},
		{"one tie of four", []float32{0.5, 2}, []float32{0.5, 0.1}, 3.5 / 4},
		{"zeros tie", []float32{0}, []float32{negZero}, 0.5},
		{"across zero", []float32{-1e-30}, []float32{1e-30}, 0},
		{"extremes", []float32{inf, -inf}, []float32{1, -1}, 0.5},
		{"saturated sigmoid", []float32{41, 40}, []float32{40.5}, 0.5},
		{"no positives", nil, []float32{1}, math.NaN()},
		{"no negatives", []float32{1}, nil, math.NaN()},
		{"nothing", nil, nil, math.NaN()},
	} {
		var list []example
		for _, x := range c.pos {
			list = append(list, example{logit: x, positive: true, weight: 1})
		}
		for _, x := range c.neg {
			list = append(list, example{logit: x, weight: 1})
		}
		if got := exactOf(list); !near(got, c.want, 1e-15) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestExactGoesOn adds after a result, and a weight after plain examples.
func TestExactGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	list := draw(rng, 300, 20, []float32{1})
	list = append(list, draw(rng, 300, 20, []float32{2, 0.5})...)
	var e Exact
	for i, x := range list {
		e.Add(x.logit, x.positive, x.weight)
		if i == 100 || i == 400 {
			if got, want := e.AUC(), bruteAUC(list[:i+1]); !near(got, want, 1e-13) {
				t.Errorf("after %d: %v, want %v", i+1, got, want)
			}
		}
	}
	if got, want := e.AUC(), bruteAUC(list); !near(got, want, 1e-13) {
		t.Errorf("at the end: %v, want %v", got, want)
	}
	e.Reset()
	if got := e.AUC(); got == got {
		t.Errorf("AUC of nothing is %v", got)
	}
	e.Add(1, true, 1)
	e.Add(0, false, 1)
	if got := e.AUC(); got != 1 {
		t.Errorf("after Reset: %v, want 1", got)
	}
}

// TestCountsHuge has so many examples that their pairs need more than 64 bits,
// where a program with 64-bit areas reports a negative AUC.
func TestCountsHuge(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, most := range []uint64{10, 1 << 20, 1 << 40, 1 << 55} {
		var c Counts
		area, pos, neg := new(big.Int), new(big.Int), new(big.Int)
		for range 50 {
			p, n := rng.Uint64N(most), rng.Uint64N(most)
			c.Add(p, n)
			bp, bn := new(big.Int).SetUint64(p), new(big.Int).SetUint64(n)
			below := new(big.Int).Add(new(big.Int).Lsh(neg, 1), bn)
			area.Add(area, below.Mul(below, bp))
			pos.Add(pos, bp)
			neg.Add(neg, bn)
		}
		all := new(big.Int).Mul(pos, neg)
		want, _ := new(big.Rat).SetFrac(area, all.Lsh(all, 1)).Float64()
		if got := c.AUC(); !near(got, want, 1e-15) {
			t.Errorf("counts below %d: %v, want %v", most, got, want)
		}
	}
	var c Counts
	c.Add(0, 1<<62)
	c.Add(1<<62, 0)
	if got := c.AUC(); got != 1 {
		t.Errorf("2^62 positives above 2^62 negatives: AUC %v", got)
	}
}

func TestHistogramBound(t *testing.T) {
	const seed = 13
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, bins := range []int{2, 7, 64, 1000, DefaultBins} {
		for _, weights := range [][]float32{{1}, {0.3, 2}} {
			list := draw(rng, 3000, 0, weights)
			list = append(list, example{-90, true, 1, 0}, example{90, false, 1, 0}, example{-90, false, 1, 0})
			all, front, back := NewHistogram(bins), NewHistogram(bins), NewHistogram(bins)
			for i, x := range list {
				all.Add(x.logit, x.positive, x.weight)
				if i < 1000 {
					front.Add(x.logit, x.positive, x.weight)
				} else {
					back.Add(x.logit, x.positive, x.weight)
				}
			}
			got, bound := all.AUC()
			exact := exactOf(list)
			if !(math.Abs(got-exact) <= bound+1e-14) {
				t.Errorf("%d bins: %v is %v off the exact %v, the bound says %v", bins, got, got-exact, exact, bound)
			}
			if bins == DefaultBins && !(bound < 5e-4) {
				t.Errorf("bound %v with the default bins", bound)
			}
			front.Merge(back)
			merged, _ := front.AUC()
			if !near(merged, got, 1e-12) || (len(weights) == 1 && merged != got) {
				t.Errorf("%d bins: merged %v, whole %v", bins, merged, got)
			}
			all.Reset()
			if a, b := all.AUC(); a == a || b == b {
				t.Errorf("AUC of nothing: %v, %v", a, b)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("histograms of different sizes merged")
		}
	}()
	NewHistogram(4).Merge(NewHistogram(5))
}

// TestHistogramBoundIsTight: within one bin the exact AUC can be 0 or 1, which
// is what the bound of one half says.
func TestHistogramBoundIsTight(t *testing.T) {
	for _, up := range []float32{1e-4, -1e-4} {
		h := NewHistogram(16)
		h.Add(0.5+up, true, 1)
		h.Add(0.5, false, 1)
		if auc, bound := h.AUC(); auc != 0.5 || bound != 0.5 {
			t.Errorf("one pair in one bin: AUC %v, bound %v", auc, bound)
		}
	}
}

func TestGroups(t *testing.T) {
	const seed = 17
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	// Weights so far apart that sums of them round, in whichever order.
	list := draw(rng, 1200, 5, []float32{0.1, 3.3e8, 0.7e4, 0.3e-5})
	list = append(list, example{1, true, 1, 900}, example{2, true, 1, 900}) // one class only
	want := func() GroupResult {
		by := map[uint64][]example{}
		for _, x := range list {
			by[x.group] = append(by[x.group], x)
		}
		var sum, weights float64
		res := GroupResult{Share: 1, Seen: len(by)}
		for _, members := range by {
			if auc := bruteAUC(members); auc == auc {
				w := 0.0
				for _, x := range members {
					w += float64(x.weight)
				}
				sum += auc * w
				weights += w
				res.Used++
			}
		}
		res.AUC = sum / weights
		return res
	}()
	var first GroupResult
	for round := range 3 {
		g := NewGroups(0)
		for _, x := range list {
			g.Add(x.group, x.logit, x.positive, x.weight)
		}
		got := g.AUC()
		if !near(got.AUC, want.AUC, 1e-12) || got.Used != want.Used || got.Seen != want.Seen || got.Share != 1 {
			t.Errorf("%+v, want %+v", got, want)
		}
		if round == 0 {
			first = got
		} else if got != first {
			t.Errorf("another order of examples: %+v instead of %+v", got, first)
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	// One group: no mean over groups that could hide a last bit.
	single := map[float64]bool{}
	for range 10 {
		g := NewGroups(0)
		for _, x := range list {
			g.Add(1, x.logit, x.positive, x.weight)
		}
		single[g.AUC().AUC] = true
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	if len(single) != 1 {
		t.Errorf("one group in ten orders of examples: %v", single)
	}
	if want.Used == want.Seen {
		t.Error("no group was left out; the test shows nothing")
	}
}

func TestGroupsSampling(t *testing.T) {
	const seed, groups, perGroup = 19, 4000, 8
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	list := draw(rng, groups*perGroup, 0, []float32{1})
	for i := range list {
		list[i].group = uint64(i / perGroup)
	}
	run := func(limit int64) (GroupResult, int64) {
		g := NewGroups(limit)
		for _, x := range list {
			g.Add(x.group, x.logit, x.positive, x.weight)
		}
		return g.AUC(), g.Bytes()
	}
	all, _ := run(0)
	some, bytes := run(groups * perGroup / 3)
	if some.Share != 0.25 || some.Seen < groups/4*8/10 || some.Seen > groups/4*12/10 {
		t.Errorf("a limit of a third keeps %+v of %d groups", some, groups)
	}
	if bytes > 16*(groups*perGroup/3*5/4+1024) {
		t.Errorf("%d bytes for a limit of %d examples", bytes, groups*perGroup/3)
	}
	if math.Abs(some.AUC-all.AUC) > 0.03 {
		t.Errorf("sampled %v, all groups %v", some.AUC, all.AUC)
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if again, _ := run(groups * perGroup / 3); again != some {
		t.Errorf("another order of examples: %+v instead of %+v", again, some)
	}
}

// TestCOPCOfTinyPredictions: a ratio that no float64 holds is undefined, as JSON has no infinity.
func TestCOPCOfTinyPredictions(t *testing.T) {
	var l Loss
	l.Add(NewTerm(-740, true), 1)
	if p := l.MeanPrediction(); p <= 0 {
		t.Fatalf("the mean prediction is %v, want a tiny one", p)
	}
	if c := l.COPC(); c == c {
		t.Errorf("COPC %v of a mean prediction of %v, want none", c, l.MeanPrediction())
	}
}

func TestLoss(t *testing.T) {
	var l Loss
	for _, v := range []float64{l.LogLoss(), l.BaseRate(), l.NormalizedEntropy(), l.COPC(), l.MeanPrediction()} {
		if v == v {
			t.Errorf("%v of no examples", v)
		}
	}
	// p = 1/2, 3/4, 1/4 with labels 1, 0, 1 and weights 1, 2, 1.
	ln3 := math.Log(3)
	l.Add(NewTerm(0, true), 1)
	l.Add(NewTerm(ln3, false), 2)
	l.Add(NewTerm(-ln3, true), 1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"log loss", l.LogLoss(), (math.Log(2) + 2*math.Log(4) + math.Log(4)) / 4},
		{"base rate", l.BaseRate(), 0.5},
		{"normalized entropy", l.NormalizedEntropy(), (math.Log(2) + 3*math.Log(4)) / 4 / math.Log(2)},
		{"mean prediction", l.MeanPrediction(), 2.25 / 4},
		{"COPC", l.COPC(), 2 / 2.25},
		{"weight", l.Weight(), 4},
		{"positives", l.Positives(), 2},
	} {
		if !near(c.got, c.want, 1e-15) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	// A confident mistake costs its logit, a confident hit next to nothing.
	var sure Loss
	sure.Add(NewTerm(-500, true), 1)
	sure.Add(NewTerm(800, true), 1)
	if sure.LogLoss() != 250 || !(sure.NormalizedEntropy() != sure.NormalizedEntropy()) {
		t.Errorf("log loss %v, normalized entropy %v", sure.LogLoss(), sure.NormalizedEntropy())
	}
	var tiny Loss
	tiny.Add(NewTerm(30, true), 1)
	if want := math.Log1p(math.Exp(-30)); !near(tiny.LogLoss(), want, 1e-28) {
		t.Errorf("log loss of a sure hit %v, want %v", tiny.LogLoss(), want)
	}
}

func TestSum(t *testing.T) {
	var s Sum
	s.Add(1)
	for range 1 << 16 {
		s.Add(0x1p-60)
	}
	s.Add(1e100)
	s.Add(-1e100)
	if want := 1 + 0x1p-44; s.Value() != want {
		t.Errorf("%v, want %v", s.Value(), want)
	}
}

func TestRadixSort(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, smallSort - 1, smallSort, 5000, 100_000} {
		for _, mask := range []uint64{math.MaxUint64, 0xff00ff, 0xffff0000ffff0000, 0} {
			a, b := make([]uint64, n), make([]uint32, n)
			for i := range a {
				a[i] = rng.Uint64() & mask
				b[i] = uint32(a[i])
			}
			wantA, wantB := slices.Clone(a), slices.Clone(b)
			slices.Sort(wantA)
			slices.Sort(wantB)
			radixSort(a, 56)
			radixSort(b, 24)
			if !slices.Equal(a, wantA) || !slices.Equal(b, wantB) {
				t.Errorf("n %d, mask %#x: not sorted", n, mask)
			}
		}
	}
}

func TestKeyKeepsOrder(t *testing.T) {
	list := []float32{-math.MaxFloat32, -16, -1, -0.5, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 1e-10, 0.5, 1, 1.0000001, 16, math.MaxFloat32}
	for i := 1; i < len(list); i++ {
		if key(list[i-1]) >= key(list[i]) {
			t.Errorf("key(%v) = %#x is not below key(%v) = %#x", list[i-1], key(list[i-1]), list[i], key(list[i]))
		}
	}
}

func TestExactBytes(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		weight float32
		each   int64
	}{{1, 4}, {2, 8}} {
		var e Exact
		for i := range n {
			e.Add(float32(i), i%3 == 0, c.weight)
		}
		if got := e.Bytes(); got < c.each*n || got > c.each*(n*5/4+2*2048) {
			t.Errorf("weight %v: %d bytes for %d examples", c.weight, got, n)
		}
	}
}

func BenchmarkExact(b *testing.B) {
	for _, weight := range []float32{1, 2} {
		b.Run(fmt.Sprintf("weight=%v", weight), func(b *testing.B) {
			list := draw(rand.New(rand.NewPCG(1, 0)), 1_000_000, 0, []float32{weight})
			b.ResetTimer()
			for range b.N {
				if auc := exactOf(list); auc < 0.5 {
					b.Fatal(auc)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/example")
		})
	}
}

func BenchmarkLoss(b *testing.B) {
	var l Loss
	for i := range b.N {
		l.Add(NewTerm(float64(i&1023)/64-8, i&7 == 0), 1)
	}
}
