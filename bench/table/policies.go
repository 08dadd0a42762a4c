package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"aibox/sparsetable"
)

// policyFigures are what all mini-batches of a phase took under a cache policy, in the
// median of the rounds.
type policyFigures struct {
	policy                    string
	tableBytes                int64 // rows and keys, at the end of the phase
	buckets                   int64 // read for pulls, ahead of them or not
	seconds, fastest, slowest float64
	cpu                       float64 // seconds
	readMB, writeMB, hits     float64
}

// printPolicies compares the cache policies of ssd, phase by phase and budget by budget,
// if several were measured.
func (rep *report) printPolicies(b *bytes.Buffer) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "phase\tbudget\tof table\tpolicy\tbuckets read\tof least\tseconds\tfrom\tto\tof least\tcpu s\tread MB\twrite MB\thits\t"
	said := false
	for _, phase := range []string{phaseCold, phaseFull, phaseHot} {
		for _, budget := range rep.policyBudgets(phase) {
			if !said {
				fmt.Fprintf(b, "\ncache policies, the default first: all mini-batches of a phase, median of the rounds\n")
				fmt.Fprintln(w, head)
			}
			said = true
			rep.printPoliciesOf(w, phase, budget)
		}
	}
	w.Flush()
}

// policyBudgets has the budgets under which policies were measured, the smallest first.
func (rep *report) policyBudgets(phase string) []int64 {
	var budgets []int64
	for _, r := range rep.sorted(phase) {
		if r.Policy != "" {
			budgets = append(budgets, r.BudgetBytes)
		}
	}
	slices.Sort(budgets)
	return slices.Compact(budgets)
}

func (rep *report) printPoliciesOf(w *tabwriter.Writer, phase string, budget int64) {
	var list []policyFigures
	reads, seconds := int64(math.MaxInt64), math.Inf(1)
	for _, policy := range sparsetable.CachePolicies() {
		var rounds []result
		for _, r := range rep.sorted(phase) {
			if r.Policy == policy && r.BudgetBytes == budget {
				rounds = append(rounds, r)
			}
		}
		if len(rounds) > 0 {
			p := rep.policyFigures(policy, rounds)
			list = append(list, p)
			reads, seconds = min(reads, p.buckets), min(seconds, p.seconds)
		}
	}
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%.3g %%\t%s\t%d\t%s\t%.2f\t%.2f\t%.2f\t%s\t%.2f\t%.0f\t%.0f\t%.4f\t\n", phase, sizeText(budget), 100*float64(budget)/float64(p.tableBytes), p.policy,
			p.buckets, ratioText(float64(p.buckets)/float64(max(1, reads))), p.seconds, p.fastest, p.slowest, ratioText(p.seconds/seconds), p.cpu, p.readMB, p.writeMB, p.hits)
	}
}

func (rep *report) policyFigures(policy string, rounds []result) policyFigures {
	of := func(value func(r *result) float64) (all []float64) {
		for i := range rounds {
			all = append(all, value(&rounds[i]))
		}
		return all
	}
	own := func(name string) float64 {
		return median(of(func(r *result) float64 { x, _ := r.Store[name].(float64); return x }))
	}
	seconds := of(func(r *result) float64 { return r.Seconds })
	const mb = 1e6
	return policyFigures{
		policy:     policy,
		tableBytes: int64(own("rows")) * int64(keyBytes+rep.RowBytes),
		buckets:    int64(own("bucket_reads")),
		seconds:    median(seconds), fastest: slices.Min(seconds), slowest: slices.Max(seconds),
		cpu:     median(of(func(r *result) float64 { return r.CPUSeconds })),
		readMB:  median(of(func(r *result) float64 { return r.DeviceReadBytes * float64(r.Batches) / mb })),
		writeMB: median(of(func(r *result) float64 { return r.DeviceWriteBytes * float64(r.Batches) / mb })),
		hits:    own("hits") / own("lookups"),
	}
}
