package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"aibox/sparsetable/hitratio"
)

// lookaheadBatches is the window of the lookahead policy in the table of hit ratios,
// unless fewer mini-batches are announced to stores.
const lookaheadBatches = 50

// measureHitRatios plays p1's and p2's mini-batches to cache policies alone and
// counts the hits of p2.
func (c *config) measureHitRatios(ctx context.Context) ([]hitratio.Result, error) {
	o := hitratio.Options{
		Keys: c.keys, Batches: c.batches, Lookups: c.lookups, S: c.s, RowBytes: c.layout.Bytes(), Window: min(c.announce, lookaheadBatches), Budgets: c.budgets,
	}
	if o.Window == 0 {
		o.Window = lookaheadBatches
	}
	for i, phase := range []string{phaseCold, phaseFull} {
		o.Seeds[i] = (&job{Seed: c.seed, Phase: phase}).phaseSeed()
	}
	return hitratio.Measure(ctx, o, func(r hitratio.Result) {
		fmt.Fprintf(os.Stderr, "hits of %s with %.4g MiB: %.4f\n", r.Policy, r.BudgetMiB, r.HitRatio)
	})
}

// printHitRatios prints policies below each other, budgets side by side.
func (rep *report) printHitRatios(b *bytes.Buffer) {
	if len(rep.HitRatios) == 0 {
		return
	}
	fmt.Fprintf(b, "\nhit ratios of cache policies in p2 after p1, by unique key, and as a share of MIN's\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	first := rep.HitRatios[0]
	fmt.Fprint(w, "policy\t")
	for _, r := range rep.HitRatios {
		if r.Policy == first.Policy {
			fmt.Fprintf(w, "%.4g MiB\tof MIN\t", r.BudgetMiB)
		}
	}
	fmt.Fprintln(w)
	for _, r := range rep.HitRatios {
		if r.BudgetMiB != first.BudgetMiB {
			break
		}
		fmt.Fprintf(w, "%s\t", r.Policy)
		for _, q := range rep.HitRatios {
			switch {
			case q.Policy != r.Policy:
			case q.Error != "":
				fmt.Fprint(w, "-\t-\t")
			default:
				fmt.Fprintf(w, "%.4f\t%.4f\t", q.HitRatio, q.OfMIN)
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}
