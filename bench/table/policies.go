package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"aibox/sparsetable"
)

// printPolicies compares the cache policies of ssd, phase by phase and budget by budget,
// if several were measured.
func (rep *report) printPolicies(b *bytes.Buffer) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "phase\tbudget\tof table\tpolicy\tbuckets read\tof least\tseconds\tof least\tcpu s\tread MB\twrite MB\thits\t"
	said := false
	for _, phase := range []string{phaseCold, phaseFull, phaseHot} {
		for _, budget := range rep.policyBudgets(phase) {
			if !said {
				fmt.Fprintf(b, "\ncache policies, the default first: all mini-batches of a phase\n")
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
	var list []result
	reads, seconds := math.Inf(1), math.Inf(1)
	for _, policy := range sparsetable.CachePolicies() {
		for _, r := range rep.sorted(phase) {
			if r.Policy == policy && r.BudgetBytes == budget {
				list = append(list, r)
				reads, seconds = min(reads, r.own("bucket_reads")), min(seconds, r.Seconds)
			}
		}
	}
	const mb = 1e6
	for _, r := range list {
		table := r.own("rows") * float64(keyBytes+rep.RowBytes) // at the end of the phase
		batches := float64(r.Batches)
		fmt.Fprintf(w, "%s\t%s\t%.3g %%\t%s\t%.0f\t%s\t%.2f\t%s\t%.2f\t%.0f\t%.0f\t%.4f\t\n", phase, sizeText(budget), 100*float64(budget)/table, r.Policy,
			r.own("bucket_reads"), ratioText(r.own("bucket_reads")/max(1, reads)), r.Seconds, ratioText(r.Seconds/seconds),
			r.CPUSeconds, r.DeviceReadBytes*batches/mb, r.DeviceWriteBytes*batches/mb, r.own("hits")/r.own("lookups"))
	}
}

// own is a number that the store itself has counted.
func (r *result) own(name string) float64 {
	x, _ := r.Store[name].(float64)
	return x
}
