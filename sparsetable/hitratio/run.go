package hitratio

import (
	"context"
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
	if err := c.validate(); err != nil {
		return c, err
	}
	return c, nil
}

// Run parses args, the command line without the command's name, and prints the results to out.
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
	p.printf("%d keys, Zipf %g, 2 x %d batches of %d lookups, %.0f unique each; made in %.0f s\n",
		c.keys, c.s, c.batches, c.lookups, float64(len(t.ids))/float64(2*c.batches), time.Since(start).Seconds())
	var all []Result
	var failed []error
	last := 0.0
	err := c.measure(context.Background(), t, func(r Result) {
		if r.BudgetMiB != last {
			p.printf("\n%-8s %-30s %10s %8s %8s %8s\n", "budget", "policy", "rows", "hits", "of MIN", "s")
			last = r.BudgetMiB
		}
		if r.Error != "" {
			p.printf("%-8s %-30s %s\n", fmt.Sprintf("%g MiB", r.BudgetMiB), r.Policy, r.Error)
			failed = append(failed, fmt.Errorf("%s at %g MiB: %s", r.Policy, r.BudgetMiB, r.Error))
			return
		}
		p.printf("%-8s %-30s %10d %8.4f %8.4f %8.1f\n", fmt.Sprintf("%g MiB", r.BudgetMiB), r.Policy, r.Rows, r.HitRatio, r.OfMIN, r.Seconds)
		all = append(all, r)
	})
	if err := errors.Join(append(failed, err)...); err != nil {
		return err
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
