package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// progress prints that a phase is over.
func progress(out io.Writer, r result) {
	switch {
	case r.Unavailable != "" || r.Error != "":
		fmt.Fprintf(out, "%s %s %s: %s%s\n", r.name(), r.Phase, sizeText(r.BudgetBytes), r.Unavailable, r.Error)
	case r.Phase == phaseLoad:
		fmt.Fprintf(out, "%s load %s: %.1f s, saved in %.1f s\n", r.name(), sizeText(r.BudgetBytes), r.LoadMS/1e3, r.SaveMS/1e3)
	default:
		fmt.Fprintf(out, "%s %s %s: %.2f ms a batch\n", r.name(), r.Phase, sizeText(r.BudgetBytes), r.BatchMS)
	}
}

// print prints the table: one phase after the other, in each phase the budgets, and for
// each budget the stores below one another.
func (rep *report) print(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d keys, rows of %d bytes and %d of key, Zipf %g, %d batches of %d lookups, seed %d, %d CPUs,\npolicy of ssd %s, %d batches announced ahead\n",
		rep.Keys, rep.RowBytes, keyBytes, rep.S, rep.Batches, rep.Lookups, rep.Seed, rep.CPUs, rep.Policy, rep.Announce)
	if rep.TrainMS > 0 {
		fmt.Fprintf(&b, "a trainer takes %g ms a batch; pull ms is what it waits\n", rep.TrainMS)
	}
	for _, name := range slices.Sorted(maps.Keys(rep.Drivers)) {
		fmt.Fprintf(&b, "  %-8s %s\n", name, rep.Drivers[name])
	}
	for _, phase := range []string{phaseCold, phaseLoad, phaseFull, phaseHot, phaseCached} {
		rep.printPhase(&b, phase)
	}
	rep.printPolicies(&b)
	rep.printDevice(&b)
	rep.printTrouble(&b)
	_, err := out.Write(b.Bytes())
	return err
}

var phaseTitles = map[string]string{
	phaseCold:   "p1: an empty store",
	phaseLoad:   "load: every key once",
	phaseFull:   "p2: a full store after a restart, cache empty (stores in memory: no restart)",
	phaseHot:    "p3: after p2 and a restart, hot set restored",
	phaseCached: "cached: few keys, everything in memory, a goroutine for each processor",
}

func (rep *report) printPhase(b *bytes.Buffer, phase string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	first, last := true, int64(-1)
	columns := 1 + strings.Count(rep.head(phase), "\t")
	for _, r := range rep.sorted(phase) {
		if first {
			fmt.Fprintf(b, "\n%s\n", phaseTitles[phase])
			fmt.Fprintln(w, rep.head(phase)+"\t")
			first, last = false, r.BudgetBytes
		}
		if r.BudgetBytes != last {
			fmt.Fprintln(w, strings.Repeat("\t", columns)) // an empty line would end the columns
			last = r.BudgetBytes
		}
		fmt.Fprintln(w, rep.line(r)+"\t")
		for p := range r.Parts {
			fmt.Fprintln(w, rep.partLine(r, p)+"\t")
		}
	}
	w.Flush()
}

// sorted returns the valid results of a phase by budget, the largest budget first.
func (rep *report) sorted(phase string) []result {
	var list []result
	for _, r := range rep.Results {
		if r.Phase == phase && r.measured() {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b result) int {
		switch {
		case a.BudgetBytes == b.BudgetBytes:
			return 0
		case a.BudgetBytes == 0 || b.BudgetBytes != 0 && a.BudgetBytes > b.BudgetBytes:
			return -1
		}
		return 1
	})
	return list
}

func (rep *report) head(phase string) string {
	if phase == phaseLoad {
		return "store\tbudget\trows/s\tload s\tsave s\tRSS MB\tstore MB\tdisk MB"
	}
	h := "store\tbudget\tpulls/s\tupdates/s\tpull ms\tpush ms\tbatch ms\tp99\treads\tread KB\twrite KB\tw.amp\tRSS MB\tstore MB\tdisk MB\topen ms\tsave ms\tx rocksdb\tpulls x"
	if phase == phaseHot {
		h += "\tx p2"
	}
	if rep.TrainMS > 0 {
		h += "\twaits"
	}
	if len(rep.Device) > 0 {
		h += "\tof device"
	}
	if rep.SnapshotEvery > 0 {
		h += "\tsnaps\tcalls\tbeside ms\tbetween ms"
	}
	return h
}

func (rep *report) line(r result) string {
	const mb = 1e6
	head := fmt.Sprintf("%s\t%s", r.name(), sizeText(r.BudgetBytes))
	sizes := fmt.Sprintf("%.0f\t%.0f\t%.1f", float64(r.PeakBytes)/mb, float64(r.StorePeak)/mb, float64(r.DiskBytes)/mb)
	if r.Phase == phaseLoad {
		return fmt.Sprintf("%s\t%s\t%.1f\t%.1f\t%s", head, rateText(r.UpdatesPerSecond), r.LoadMS/1e3, r.SaveMS/1e3, sizes)
	}
	s := fmt.Sprintf("%s\t%s\t%.2f\t%s\t%.0f\t%.0f\t%s\t%s", head, figuresText(r.figures), r.WriteAmplification, sizes, r.OpenMS, r.SaveMS,
		ratioText(r.TimesRocksDB), ratioText(r.PullsTimesRocksDB))
	if r.Phase == phaseHot {
		s += "\t" + ratioText(r.TimesP2)
	}
	return s + rep.optionalText(r.figures)
}

// partLine has the figures of a part of the mini-batches.
func (rep *report) partLine(r result, part int) string {
	f := r.Parts[part]
	s := fmt.Sprintf("part %d\t\t%s%s\t%s\t%s", part+1, figuresText(f), strings.Repeat("\t", 6),
		ratioText(f.TimesRocksDB), ratioText(f.PullsTimesRocksDB))
	if r.Phase == phaseHot {
		s += "\t" + ratioText(f.TimesP2)
	}
	return s + rep.optionalText(f)
}

// figuresText is the columns from pulls/s to write KB.
func figuresText(f figures) string {
	const kb = 1e3
	return fmt.Sprintf("%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f", rateText(f.PullsPerSecond), rateText(f.UpdatesPerSecond),
		f.PullMS, f.PushMS, f.BatchMS, f.BatchMSP99, f.DeviceReads, f.DeviceReadBytes/kb, f.DeviceWriteBytes/kb)
}

// optionalText is the columns that flags ask for.
func (rep *report) optionalText(f figures) (s string) {
	if rep.TrainMS > 0 {
		s += fmt.Sprintf("\t%.1f %%", 100*f.WaitShare)
	}
	if len(rep.Device) > 0 {
		if f.DeviceShare == 0 {
			s += "\t-"
		} else {
			s += fmt.Sprintf("\t%.0f %%", 100*f.DeviceShare)
		}
	}
	if rep.SnapshotEvery > 0 {
		if f.Snapshots == 0 {
			return s + "\t-\t-\t-\t-"
		}
		s += fmt.Sprintf("\t%d\t%.2f %%\t%.2f\t%.2f", f.Snapshots, 100*f.SnapshotShare, f.BesideBatchMS, f.BetweenBatchMS)
	}
	return s
}

// printDevice prints the rates of the device without a store.
func (rep *report) printDevice(b *bytes.Buffer) {
	if len(rep.Device) == 0 {
		return
	}
	fmt.Fprintf(b, "\nthe device alone: random reads\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "phases\tbytes\tdepth\treads/s\t")
	for _, d := range rep.Device {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t\n", d.When, d.ReadBytes, d.Depth, rateText(d.PerSecond))
	}
	w.Flush()
}

// printTrouble prints which phases failed, and which results must be wrong.
func (rep *report) printTrouble(b *bytes.Buffer) {
	said := map[string]bool{}
	say := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if !said[line] {
			fmt.Fprintf(b, "\n%s\n", line)
		}
		said[line] = true
	}
	for _, r := range rep.Results {
		switch {
		case r.Unavailable != "":
			say("%s: %s", r.name(), r.Unavailable)
		case r.Error != "":
			say("FAILED %s %s %s: %s", r.name(), r.Phase, sizeText(r.BudgetBytes), r.Error)
		case r.DigestDiffers:
			say("WRONG %s %s %s: its rows differ from those of the first store", r.name(), r.Phase, sizeText(r.BudgetBytes))
		}
	}
}

func ratioText(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// rateText is a number of things per second in three digits.
func rateText(x float64) string {
	if x >= 1e6 {
		return fmt.Sprintf("%.2fM", x/1e6)
	}
	return fmt.Sprintf("%.0fk", x/1e3)
}

// sizeText is a budget.
func sizeText(bytes int64) string {
	if bytes == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4gMiB", float64(bytes)/(1<<20))
}
