package hitratio

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func smallTrace(seed int64) *trace {
	return newTrace(config{keys: 300, batches: 12, lookups: 60, s: 1.2, seed: seed})
}

func TestTrace(t *testing.T) {
	tr := smallTrace(1)
	for b := range tr.batches {
		lo, hi := tr.span(b)
		have := map[uint32]bool{}
		lookups := 0
		for i := lo; i < hi; i++ {
			k := tr.ids[i]
			if have[k] {
				t.Fatalf("batch %d has key %d twice", b, k)
			}
			have[k] = true
			lookups += int(tr.lookups[i])
			want := uint16(never)
		search:
			for n := b + 1; n < tr.batches; n++ {
				from, to := tr.span(n)
				for _, other := range tr.ids[from:to] {
					if other == k {
						want = uint16(n)
						break search
					}
				}
			}
			if tr.next[i] != want {
				t.Fatalf("batch %d: key %d is next used in %d, the trace says %d", b, k, want, tr.next[i])
			}
		}
		if lookups != 60 {
			t.Fatalf("batch %d has %d lookups, want 60", b, lookups)
		}
	}
}

// minNaive is a slow form of MIN, with a set of keys and a search for the key that is needed last.
func minNaive(t *trace, rows int) (hits int64) {
	next := map[uint32]uint16{} // of the kept keys
	for b := range t.batches {
		lo, hi := t.span(b)
		for _, k := range t.ids[lo:hi] {
			if _, ok := next[k]; ok && b >= t.from {
				hits++
			}
		}
		for i := lo; i < hi; i++ {
			next[t.ids[i]] = t.next[i]
		}
		for k, n := range next {
			if n == never {
				delete(next, k)
			}
		}
		for len(next) > rows {
			var worst uint32
			far := -1
			for k, n := range next {
				if int(n) > far {
					worst, far = k, int(n)
				}
			}
			delete(next, worst)
		}
	}
	return hits
}

// lfuNaive is a slow form of lfu, with a search for the lowest rank.
func lfuNaive(t *trace, rows int) (hits int64) {
	type state struct{ uses, since int }
	kept, ever := map[uint32]state{}, map[uint32]int{}
	clock := 0
	for b := range t.batches {
		lo, hi := t.span(b)
		for _, k := range t.ids[lo:hi] {
			clock++
			_, ok := kept[k]
			if ok && b >= t.from {
				hits++
			}
			if !ok && len(kept) == rows {
				var worst uint32
				var w state
				for k, s := range kept {
					if w.since == 0 || s.uses < w.uses || s.uses == w.uses && s.since < w.since {
						worst, w = k, s
					}
				}
				delete(kept, worst)
			}
			ever[k]++
			kept[k] = state{ever[k], clock}
		}
	}
	return hits
}

func TestAgainstNaive(t *testing.T) {
	for seed := range int64(20) {
		tr := smallTrace(seed)
		rows := 40 + rand.New(rand.NewPCG(uint64(seed), 0)).IntN(150)
		if got, want := belady(tr, rows), minNaive(tr, rows); got != want {
			t.Errorf("seed %d, %d rows: MIN has %d hits, want %d", seed, rows, got, want)
		}
		if got, want := lfu(tr, rows), lfuNaive(tr, rows); got != want {
			t.Errorf("seed %d, %d rows: LFU has %d hits, want %d", seed, rows, got, want)
		}
	}
}

// A window as long as the trace has as many hits as MIN, except for the rows that must stay while
// they are in use.
func TestWindowBound(t *testing.T) {
	for seed := range int64(5) {
		tr := smallTrace(seed)
		short, long, best := windowBound(tr, 100, 0), windowBound(tr, 100, tr.batches), belady(tr, 100)
		if long > best || long < best*95/100 || short >= long {
			t.Errorf("seed %d: %d hits without a window, %d with all of it, MIN has %d", seed, short, long, best)
		}
	}
}

// TestRun runs the whole program on a small trace. Every policy must appear in the results, none may
// have more hits than MIN, and the policies that know more of the future must have more hits.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	var out strings.Builder
	if err := Run([]string{"-keys", "200000", "-batches", "40", "-lookups", "4000", "-budgets", "1", "-window", "20", "-json", file}, &out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var results []Result
	if err := json.Unmarshal(b, &results); err != nil {
		t.Fatal(err)
	}
	hits := map[string]float64{}
	for _, r := range results {
		hits[r.Policy] = r.HitRatio
		if r.OfMIN > 1 && r.Policy != "bound: popularity" || r.HitRatio <= 0 {
			t.Errorf("%+v", r)
		}
		if !strings.Contains(out.String(), r.Policy) {
			t.Errorf("%s is not in the table", r.Policy)
		}
	}
	for _, order := range [][2]string{
		{"lru_lfu (hard)", "history (hard)"},
		{"history (ideal)", "lookahead 8 (ideal)"},
		{"lookahead 8 (ideal)", "lookahead 20 (ideal)"},
		{"history (hard)", "history (ideal)"},
	} {
		worse, ok1 := hits[order[0]]
		better, ok2 := hits[order[1]]
		if !ok1 || !ok2 || worse >= better {
			t.Errorf("%s hits %.4f, %s %.4f: want less", order[0], worse, order[1], better)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A budget that is too small for one policy does not keep the others from being measured.
func TestBudgetTooSmall(t *testing.T) {
	var out strings.Builder
	err := Run([]string{"-keys", "20000", "-batches", "10", "-lookups", "500", "-s", "1.2", "-window", "4", "-budgets", "0.015625"}, &out)
	if err == nil || !strings.Contains(err.Error(), "history (hard) at 0.015625 MiB") || strings.Contains(err.Error(), "LFU, all history at") {
		t.Errorf("error %v", err)
	}
	figures := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		for _, policy := range []string{"MIN", "LFU, all history", "history (hard)"} {
			if strings.HasPrefix(line, "0.015625 MiB "+policy+" ") && len(strings.Fields(line)) == 7+strings.Count(policy, " ") {
				figures[policy] = true
			}
		}
	}
	if !figures["MIN"] || !figures["LFU, all history"] || figures["history (hard)"] {
		t.Errorf("figures of %v in\n%s", figures, out.String())
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-budgets", "a"}, {"-s", "1"}, {"-nothing"}, {"-value-bytes", "7"}} {
		if err := Run(args, &strings.Builder{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
