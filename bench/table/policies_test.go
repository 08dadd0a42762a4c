package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
)

// TestPolicies: every policy does the same work, on copies of one loaded store, and the report sets
// them side by side.
func TestPolicies(t *testing.T) {
	rep, text := runTiny(t, "-drivers", "memory,ssd", "-policy", "all", "-phases", "p1,p2", "-keys", "100000", "-budget", "60%")
	runs := map[string]int{}
	for _, r := range rep.Results {
		runs[r.Phase+" "+r.name()]++
		if r.DigestDiffers || r.Phase != phaseLoad && r.Seconds <= 0 {
			t.Errorf("%s %s: %+v", r.name(), r.Phase, r)
		}
	}
	for _, policy := range sparsetable.CachePolicies() {
		for _, phase := range []string{"p1 ssd ", "p2 ssd "} {
			if runs[phase+policy] != 1 {
				t.Errorf("%s%s was measured %d times, want once", phase, policy, runs[phase+policy])
			}
		}
		if !strings.Contains(text, policy) {
			t.Errorf("%s is missing in\n%s", policy, text)
		}
	}
	if runs["load ssd"] != 1 || runs["p1 memory"] != 1 {
		t.Errorf("%v: want one load, and memory once", runs)
	}
	_, comparison, found := strings.Cut(text, "cache policies, the default first")
	if lines := strings.Count(comparison, " 60 %"); !found || lines != 3 {
		t.Errorf("%d lines of p2 under 60 %% of the table, want 3\n%s", lines, text)
	}
}

func TestPolicyFigures(t *testing.T) {
	of := func(policy string, budget int64, seconds, reads float64) result {
		return result{
			Driver: "ssd", Policy: policy, Phase: phaseFull, BudgetBytes: budget, figures: figures{Seconds: seconds, Batches: 2},
			Store: map[string]any{"bucket_reads": reads, "rows": 1000.0, "hits": 3.0, "lookups": 4.0},
		}
	}
	p := sparsetable.CachePolicies()
	rep := report{RowBytes: 92, Results: []result{
		of(p[0], 50_000, 3, 200), of(p[1], 50_000, 2, 400), of(p[1], 5000, 1, 7),
	}}
	var out strings.Builder
	if err := rep.print(&out); err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 10 && strings.Contains(line, " %") {
			lines = append(lines, f)
		}
	}
	want := [][]string{
		{"p2", "0.004768MiB", "5", "%", p[1], "7", "1.00", "1.00", "1.00", "0.00", "0", "0", "0.7500"},
		{"p2", "0.04768MiB", "50", "%", p[0], "200", "1.00", "3.00", "1.50", "0.00", "0", "0", "0.7500"},
		{"p2", "0.04768MiB", "50", "%", p[1], "400", "2.00", "2.00", "1.00", "0.00", "0", "0", "0.7500"},
	}
	if !slices.EqualFunc(lines, want, slices.Equal[[]string]) {
		t.Errorf("lines\n%q, want\n%q\n%s", lines, want, out.String())
	}
}

func TestParsePolicies(t *testing.T) {
	c, err := parse([]string{"-quick", "-policy", "all", "-budget", "1%,50%"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.policies, sparsetable.CachePolicies()) || c.keys != 5_000_000 || c.batches != 200 {
		t.Errorf("policies %q, %d keys, %d batches", c.policies, c.keys, c.batches)
	}
	if want := []int64{5_000_000 * 104 / 100, 5_000_000 * 104 / 2}; !slices.Equal(c.budgets, want) {
		t.Errorf("budgets %d, want %d", c.budgets, want)
	}
	for _, args := range [][]string{{"-budget", "0%"}, {"-budget", "x%"}, {"-budget", "2000%"}, {"-policy", "lookahead,x"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
