package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"aibox/sparsetable"
)

// config is the command line.
type config struct {
	keys, batches, lookups int
	s                      float64
	seed                   int64
	layout                 sparsetable.Layout
	budgets                []int64 // bytes
	phases, drivers        []string
	getters                int
	announce               int
	policy                 string
	trainMS                float64
	dir, jsonFile          string
	keep                   bool
}

// The phases that --phases takes, in the order in which they run.
const (
	phaseLoad = "load" // before p2: all keys, once
	phaseCold = "p1"   // an empty store
	phaseFull = "p2"   // a full store, after a restart with an empty cache
	phaseHot  = "p3"   // after p2 and another restart: the hot set is restored
)

// quickPart is what --quick divides keys, lookups and budgets by. Batches are
// cut further: a store's own steady state comes early when it is small.
const quickPart = 20

func parse(args []string, out io.Writer) (config, error) {
	var c config
	var budgets, phases, names string
	f := flag.NewFlagSet("table", flag.ContinueOnError)
	f.SetOutput(out)
	f.IntVar(&c.keys, "keys", 20_000_000, "`number` of keys")
	f.IntVar(&c.batches, "batches", 300, "mini-`batches` per phase")
	f.IntVar(&c.lookups, "lookups", 4096*26, "`lookups` per mini-batch, not unique")
	f.Float64Var(&c.s, "s", 1.125, "exponent of Zipf's law, above 1")
	f.Int64Var(&c.seed, "seed", 1, "seed of the mini-batches")
	f.IntVar(&c.layout.ValueDim, "value-dim", 16, "float32 `values` of a row")
	f.IntVar(&c.layout.StateDim, "state-dim", 4, "float32 words of optimizer `state` of a row")
	f.StringVar(&budgets, "budget", "256MiB,64MiB,16MiB", "memory `budgets`, comma-separated")
	f.StringVar(&phases, "phases", "p1,p2,p3", "`phases`, comma-separated: p1, p2, p3 (which runs p2, too)")
	f.StringVar(&names, "drivers", "all", "`stores`, comma-separated: "+strings.Join(driverNames(), ", "))
	f.IntVar(&c.getters, "getters", 64, "`reads` that peers have in flight")
	f.IntVar(&c.announce, "announce", 50, "`batches` announced ahead to stores that listen; 0: none")
	f.StringVar(&c.policy, "policy", sparsetable.CachePolicies()[0], "cache `policy` of ssd: "+strings.Join(sparsetable.CachePolicies(), ", "))
	f.Float64Var(&c.trainMS, "train-ms", 0, "`milliseconds` that a trainer takes for a mini-batch while the next one is pulled; 0: no trainer")
	f.StringVar(&c.dir, "dir", "", "`directory` for the stores, on the SSD to measure; default: a temporary one")
	f.BoolVar(&c.keep, "keep", false, "keep the stores' directories")
	f.StringVar(&c.jsonFile, "json", "", "also write the results to `FILE`")
	quick := f.Bool("quick", false, "a twentieth of keys, lookups and budget, 40 batches, the largest budget: about a minute")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	var err error
	if c.budgets, err = parseBudgets(budgets); err != nil {
		return c, err
	}
	if c.phases, err = choose("phases", phases, []string{phaseCold, phaseFull, phaseHot}); err != nil {
		return c, err
	}
	if c.drivers, err = choose("drivers", names, driverNames()); err != nil {
		return c, err
	}
	if *quick {
		c.keys, c.lookups, c.batches = c.keys/quickPart, c.lookups/quickPart, min(c.batches, 40)
		c.budgets = []int64{slices.Max(c.budgets) / quickPart}
	}
	return c, c.validate()
}

func (c *config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.keys >= 2 && c.keys < math.MaxUint32, "%d keys: want 2 to %d", c.keys, math.MaxUint32-1)
	check(c.batches >= 1, "%d batches: want at least 1", c.batches)
	check(c.lookups >= 1 && c.lookups <= 1<<24, "%d lookups: want 1 to %d", c.lookups, 1<<24)
	check(c.s > 1 && c.s < 10, "exponent %g: want more than 1, less than 10", c.s)
	check(c.getters >= 1 && c.getters <= 1024, "%d getters: want 1 to 1024", c.getters)
	check(c.announce >= 0 && c.announce <= 1000, "%d batches announced: want 0 to 1000", c.announce)
	check(slices.Contains(sparsetable.CachePolicies(), c.policy), "policy %q: want one of %s", c.policy, strings.Join(sparsetable.CachePolicies(), ", "))
	check(c.trainMS >= 0 && c.trainMS <= 60_000, "trainer of %g ms: want 0 to 60000", c.trainMS)
	check(c.layout.Validate() == nil, "%d values and %d words of state: no table has such rows", c.layout.ValueDim, c.layout.StateDim)
	return errors.Join(errs...)
}

// choose splits list and orders it as known is. "all" stands for all of known.
func choose(what, list string, known []string) ([]string, error) {
	if list == "all" {
		return known, nil
	}
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("--%s: unknown %q, want some of %s", what, w, strings.Join(known, ", "))
		}
	}
	var chosen []string
	for _, k := range known {
		if slices.Contains(wanted, k) {
			chosen = append(chosen, k)
		}
	}
	return chosen, nil
}

func parseBudgets(list string) ([]int64, error) {
	var budgets []int64
	for b := range strings.SplitSeq(list, ",") {
		n, err := parseBytes(b)
		if err != nil {
			return nil, fmt.Errorf("--budget: %w", err)
		}
		budgets = append(budgets, n)
	}
	return budgets, nil
}

// parseBytes reads sizes like 64MiB, 1.5GiB or 4096.
func parseBytes(s string) (int64, error) {
	number, unit := s, 1.0
	for suffix, bytes := range map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = n, bytes
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*unit < 1 || n*unit > 1<<50 {
		return 0, fmt.Errorf("%q is not a size such as 64MiB", s)
	}
	return int64(n * unit), nil
}
