package hitratio

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

type config struct {
	keys, batches, lookups int
	s                      float64
	seed                   int64
	valueBytes, window     int
	budgetsMiB             []float64
	only, jsonFile         string
}

func parse(args []string, out io.Writer) (config, error) {
	flags := flag.NewFlagSet("policies", flag.ContinueOnError)
	flags.SetOutput(out)
	var c config
	var budgets string
	quick := flags.Bool("quick", false, "a twentieth of everything: a few seconds")
	flags.IntVar(&c.keys, "keys", 20_000_000, "`number` of keys")
	flags.IntVar(&c.batches, "batches", 300, "`batches` per phase, at most 32,000")
	flags.IntVar(&c.lookups, "lookups", 4096*26, "`lookups` per batch")
	flags.Float64Var(&c.s, "s", 1.125, "exponent of Zipf's law, above 1")
	flags.Int64Var(&c.seed, "seed", 1, "seed of the trace")
	flags.IntVar(&c.valueBytes, "value-bytes", 80, "`bytes` of a row, a multiple of 4")
	flags.IntVar(&c.window, "window", 50, "`batches` that lookahead and its bound see")
	flags.StringVar(&budgets, "budgets", "256,128,64,16", "budgets in `MiB`")
	flags.StringVar(&c.only, "only", "", "run the policies whose name contains `TEXT`")
	flags.StringVar(&c.jsonFile, "json", "", "also write the results to `FILE`")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *quick {
		c.keys, c.batches, c.lookups = c.keys/20, max(4, c.batches/5), c.lookups/20
	}
	for f := range strings.SplitSeq(budgets, ",") {
		b, err := strconv.ParseFloat(f, 64)
		if err != nil || b <= 0 {
			return c, fmt.Errorf("-budgets: %q is not a size in MiB", f)
		}
		if *quick {
			b /= 20
		}
		c.budgetsMiB = append(c.budgetsMiB, b)
	}
	if c.keys < 2 || c.batches < 1 || c.batches > 32_000 || c.lookups < 1 || c.s <= 1 || c.valueBytes < 4 || c.valueBytes%4 != 0 || c.window < 0 {
		return c, errors.New("a flag is out of range; see -help")
	}
	return c, nil
}

// result is one cell of the table.
type result struct {
	Policy    string  `json:"policy"`
	BudgetMiB float64 `json:"budget_mib"`
	Rows      int     `json:"rows"` // that the policy could keep
	HitRatio  float64 `json:"hit_ratio"`
	OfMIN     float64 `json:"of_min"`
	Seconds   float64 `json:"seconds"` // of the whole run, both phases
}

// Run parses args, the command line without the command's name, and prints the
// table to out.
func Run(args []string, out io.Writer) error {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	return c.run(out)
}

// printer prints line by line and keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (c config) run(out io.Writer) error {
	start := time.Now()
	p := &printer{out: out}
	t := newTrace(c)
	p.printf("%d keys, Zipf %g, 2 x %d batches of %d lookups, %.0f unique each; made in %.0f s\n\n",
		c.keys, c.s, c.batches, c.lookups, float64(len(t.ids))/float64(2*c.batches), time.Since(start).Seconds())
	var all []result
	for _, mib := range c.budgetsMiB {
		rows := int(mib * (1 << 20) / float64(c.valueBytes+8))
		p.printf("%-8s %-30s %10s %8s %8s %8s\n", "budget", "policy", "rows", "hits", "of MIN", "s")
		best := 0.0
		for _, con := range contestants(c) {
			if con.name != "MIN" && !strings.Contains(con.name, c.only) {
				continue
			}
			began := time.Now()
			hits, kept, err := con.run(t, rows, int64(mib*(1<<20)))
			if err != nil {
				return fmt.Errorf("%s at %g MiB: %w", con.name, mib, err)
			}
			r := result{Policy: con.name, BudgetMiB: mib, Rows: kept, HitRatio: float64(hits) / float64(t.counted()), Seconds: time.Since(began).Seconds()}
			if con.name == "MIN" {
				best = r.HitRatio
			}
			r.OfMIN = r.HitRatio / best
			p.printf("%-8s %-30s %10d %8.4f %8.4f %8.1f\n", fmt.Sprintf("%g MiB", mib), r.Policy, r.Rows, r.HitRatio, r.OfMIN, r.Seconds)
			all = append(all, r)
		}
		p.printf("\n")
	}
	if p.err != nil || c.jsonFile == "" {
		return p.err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.jsonFile, append(b, '\n'), 0o666)
}

// contestant is a policy to be measured. run returns the hits of the second
// phase and the rows that it could keep.
type contestant struct {
	name string
	run  func(t *trace, rows int, bytes int64) (hits int64, kept int, err error)
}

func contestants(c config) []contestant {
	list := []contestant{
		{"MIN", func(t *trace, rows int, _ int64) (int64, int, error) { return belady(t, rows), rows, nil }},
		{"bound: popularity", func(t *trace, rows int, _ int64) (int64, int, error) { return popularity(t, rows), rows, nil }},
		{fmt.Sprintf("bound: window %d", c.window), func(t *trace, rows int, _ int64) (int64, int, error) {
			return windowBound(t, rows, c.window), rows, nil
		}},
		{"LRU", func(t *trace, rows int, _ int64) (int64, int, error) { return ranked(t, rows, byRecency), rows, nil }},
		{"LFU, counts in cache", func(t *trace, rows int, _ int64) (int64, int, error) {
			return ranked(t, rows, byUsesInCache), rows, nil
		}},
		{"LFU, counts of all history", func(t *trace, rows int, _ int64) (int64, int, error) { return ranked(t, rows, byUsesEver), rows, nil }},
		{"W-TinyLFU (otter)", tinyLFU},
	}
	return append(list, ours(c)...)
}
