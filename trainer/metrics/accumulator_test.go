package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

type examples struct {
	logits, labels, weights []float32
	groups                  []uint64
}

func draw(seed uint64, n int) examples {
	rng := rand.New(rand.NewPCG(seed, 0))
	var e examples
	for range n {
		label := float32(0)
		if rng.Float64() < 0.2 {
			label = 1
		}
		e.logits = append(e.logits, float32(math.Round(8*(rng.NormFloat64()+float64(label)-2))/8))
		e.labels = append(e.labels, label)
		e.weights = append(e.weights, float32(rng.IntN(4))/2)
		e.groups = append(e.groups, rng.Uint64N(30))
	}
	return e
}

// addIn adds the examples in mini-batches of the given size.
func (e examples) addIn(t *testing.T, a *Accumulator, size int) {
	t.Helper()
	for i := 0; i < len(e.logits); i += size {
		j := min(i+size, len(e.logits))
		if err := a.Add(e.logits[i:j], e.labels[i:j], e.weights[i:j], e.groups[i:j]); err != nil {
			t.Fatal(err)
		}
	}
}

func near(got Value, want float64) bool { return math.Abs(float64(got)-want) <= 1e-12 }

func TestReportAgainstDefinitions(t *testing.T) {
	const seed, n, rate = 31, 1500, 0.25
	t.Logf("seed %d", seed)
	e := draw(seed, n)
	a := New(Options{Exact: true, Groups: true, LogitShift: float32(math.Log(rate))})
	e.addIn(t, a, 64)
	r := a.Report()

	var weight, clicks, predicted, loss float64
	var won, pairs float64
	for i := range e.logits {
		w := float64(e.weights[i])
		// The shifted logit, as served, is a float32.
		p := 1 / (1 + math.Exp(-float64(e.logits[i]+float32(math.Log(rate)))))
		weight += w
		clicks += w * float64(e.labels[i])
		predicted += w * p
		if e.labels[i] == 1 {
			loss -= w * math.Log(p)
		} else {
			loss -= w * math.Log(1-p)
		}
		for j := range e.logits {
			if e.labels[i] != 1 || e.labels[j] != 0 {
				continue
			}
			pair := w * float64(e.weights[j])
			pairs += pair
			if e.logits[i] > e.logits[j] {
				won += pair
			} else if e.logits[i] == e.logits[j] {
				won += pair / 2
			}
		}
	}
	base := clicks / weight
	entropy := -base*math.Log(base) - (1-base)*math.Log(1-base)
	for _, c := range []struct {
		name string
		got  Value
		want float64
	}{
		{"weight", Value(r.WeightSum), weight}, {"positives", Value(r.Positives), clicks},
		{"base rate", r.BaseRate, base}, {"mean prediction", r.MeanPrediction, predicted / weight},
		{"COPC", r.COPC, clicks / predicted}, {"log loss", r.LogLoss, loss / weight},
		{"normalized entropy", r.NormalizedEntropy, loss / weight / entropy}, {"AUC", r.AUC, won / pairs},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if r.Examples != n || !r.AUCExact || r.AUCError != 0 {
		t.Errorf("%d examples, exact %v, error %v", r.Examples, r.AUCExact, r.AUCError)
	}
	if d := math.Abs(float64(r.StreamingAUC - r.AUC)); d > float64(r.StreamingAUCError)+1e-14 || r.StreamingAUCError > 0.1 {
		t.Errorf("streaming AUC %v is %v off, bound %v", r.StreamingAUC, d, r.StreamingAUCError)
	}
	if r.Groups != 30 || r.GroupsUsed != 30 || r.GroupShare != 1 || !r.GroupAUC.Defined() {
		t.Errorf("groups: %+v", r)
	}
}

// TestBatchesLeaveNoTrace checks that the bits of a report do not depend on the mini-batch size and
// on earlier reports.
func TestBatchesLeaveNoTrace(t *testing.T) {
	e := draw(5, 2000)
	a := New(Options{Exact: true, Groups: true})
	e.addIn(t, a, 1)
	want := a.Report()
	for _, size := range []int{7, 500, 2000} {
		a.Reset()
		e.addIn(t, a, size)
		_ = a.Report()
		if got := a.Report(); got != want {
			t.Errorf("mini-batches of %d: %+v, want %+v", size, got, want)
		}
	}
}

func TestUndefinedIsNull(t *testing.T) {
	a := New(Options{Exact: true, Groups: true})
	check := func(name string, undefined ...string) {
		b, err := json.Marshal(a.Report())
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		for _, f := range undefined {
			if v, ok := fields[f]; !ok || v != nil {
				t.Errorf("%s: %s is %v in %s", name, f, v, b)
			}
			delete(fields, f)
		}
		for f, v := range fields {
			if v == nil {
				t.Errorf("%s: %s is null", name, f)
			}
		}
		var back Report
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(back); string(again) != string(b) {
			t.Errorf("%s: %s came back as %s", name, b, again)
		}
	}
	aucs := []string{"auc", "auc_error", "streaming_auc", "streaming_auc_error", "group_auc", "normalized_entropy"}
	check("no examples", append(aucs, "base_rate", "mean_prediction", "copc", "log_loss")...)
	if err := a.Add([]float32{1, 2}, []float32{1, 1}, nil, []uint64{1, 1}); err != nil {
		t.Fatal(err)
	}
	check("one class", aucs...)
	if err := a.Add([]float32{1}, []float32{0}, nil, []uint64{2}); err != nil {
		t.Fatal(err)
	}
	check("both classes, but not in one group", "group_auc")
	if err := a.Add([]float32{1}, []float32{0}, nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	check("all defined")
	if got := a.Report().GroupAUC; got != 0.75 {
		t.Errorf("group AUC %v, want 0.75", got)
	}
}

// TestReportEmbeds: a line of metrics may embed a report beside its own fields.
func TestReportEmbeds(t *testing.T) {
	b, err := json.Marshal(struct {
		Step int `json:"step"`
		Report
	}{3, New(Options{}).Report()})
	if err != nil || !strings.HasPrefix(string(b), `{"step":3,"examples":0,`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestAddRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	one := []float32{1, 1}
	a := New(Options{Exact: true, Groups: true})
	groups := []uint64{1, 2}
	for _, c := range []struct {
		name                    string
		logits, labels, weights []float32
		groups                  []uint64
		says                    string
	}{
		{"NaN logit", []float32{1, nan}, one, nil, groups, "example 1: logit is not a finite number: NaN"},
		{"infinite logit", []float32{-inf, 0}, one, nil, groups, "example 0"},
		{"label", one, []float32{0, 0.5}, nil, groups, "label 0.5"},
		{"NaN weight", one, one, []float32{1, nan}, groups, "weight NaN"},
		{"negative weight", one, one, []float32{-1, 1}, groups, "weight -1"},
		{"short labels", one, one[:1], nil, groups, "2 logits with 1 labels"},
		{"no groups", one, one, nil, nil, "group"},
	} {
		err := a.Add(c.logits, c.labels, c.weights, c.groups)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.Contains(c.name, "logit") != errors.Is(err, ErrNotFinite) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if r := a.Report(); r.Examples != 0 || r.WeightSum != 0 || r.Groups != 0 {
		t.Errorf("a refused mini-batch left %+v", r)
	}
}

func TestMaxExactExamples(t *testing.T) {
	e := draw(9, 3000)
	all, bounded := New(Options{Exact: true, Groups: true}), New(Options{Exact: true, Groups: true, MaxExactExamples: 1000})
	e.addIn(t, all, 100)
	e.addIn(t, bounded, 100)
	r, want := bounded.Report(), all.Report()
	if r.AUCExact || r.AUC != r.StreamingAUC || !(r.AUCError > 0) {
		t.Errorf("past the bound: %+v", r)
	}
	if d := math.Abs(float64(r.AUC - want.AUC)); d > float64(r.AUCError)+1e-14 {
		t.Errorf("AUC is %v off, the bound says %v", d, r.AUCError)
	}
	if r.GroupShare != 0.5 && r.GroupShare != 0.25 {
		t.Errorf("share of groups %v", r.GroupShare)
	}
	if bounded.exact != nil {
		t.Error("examples are kept past the bound")
	}
	bounded.Reset()
	if err := bounded.Add(e.logits[:500], e.labels[:500], nil, e.groups[:500]); err != nil {
		t.Fatal(err)
	}
	if r := bounded.Report(); !r.AUCExact || r.GroupShare != 1 {
		t.Errorf("after Reset: %+v", r)
	}
}

// TestAddTo: several accumulators get what each would get by itself.
func TestAddTo(t *testing.T) {
	e := draw(3, 3000)
	weights := make([]float32, len(e.logits))
	for i := range weights {
		weights[i] = float32(i%5) / 2
	}
	options := []Options{{LogitShift: 0.25}, {LogitShift: 0.25, Bins: 64, Exact: true, MaxExactExamples: 1500}, {LogitShift: 0.25, Groups: true}}
	var together, alone []*Accumulator
	for _, o := range options {
		together, alone = append(together, New(o)), append(alone, New(o))
	}
	for lo := 0; lo < len(e.logits); lo += 1000 {
		hi := lo + 1000
		if err := AddTo(together, e.logits[lo:hi], e.labels[lo:hi], weights[lo:hi], e.groups[lo:hi]); err != nil {
			t.Fatal(err)
		}
		for _, a := range alone {
			if err := a.Add(e.logits[lo:hi], e.labels[lo:hi], weights[lo:hi], e.groups[lo:hi]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range options {
		if got, want := fmt.Sprintf("%+v", together[i].Report()), fmt.Sprintf("%+v", alone[i].Report()); got != want {
			t.Errorf("accumulator %d: %s, by itself %s", i, got, want)
		}
	}
	bad := append([]float32(nil), e.logits[:10]...)
	bad[5] = float32(math.NaN())
	before := together[0].Report().Examples
	if err := AddTo(together, bad, e.labels[:10], nil, e.groups[:10]); err == nil || together[0].Report().Examples != before {
		t.Error("a part of the examples was added in spite of an error", err)
	}
}

func BenchmarkAdd(b *testing.B) {
	e := draw(1, 4096)
	a := New(Options{Exact: true})
	for range b.N {
		a.Reset()
		if err := a.Add(e.logits, e.labels, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/example")
}
