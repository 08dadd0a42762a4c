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
	policies               []string // of ssd: each is measured as a store of its own
	trainMS                float64
	dir, jsonFile          string
	keep                   bool
	externals              []driver // stores of other programs
	parts                  int      // of a phase, reported by themselves
	snapshotEvery          int      // mini-batches; 0: no snapshots
	deviceSeconds          float64  // of each measurement; 0: none
}

// The phases that --phases takes, in the order in which they run.
const (
	phaseLoad   = "load"   // before p2: all keys, once
	phaseCold   = "p1"     // an empty store
	phaseFull   = "p2"     // a full store, after a restart with an empty cache
	phaseHot    = "p3"     // after p2 and another restart: the hot set is restored
	phaseCached = "cached" // few keys: everything is in memory
)

// quickPart is the number by which --quick divides keys, lookups and budgets. It reduces
// the number of batches even more, because a small store is soon in its steady state.
const quickPart = 20

// With budgets that are shares of the table, --quick keeps more keys and batches: a table of
// KindSSD needs about 4 MB however few rows it has, which must not exceed one percent of their
// size.
const quickSharePart, quickShareBatches = 4, 200

func parse(args []string, out io.Writer) (config, error) {
	var c config
	var budgets, phases, names, policies string
	f := flag.NewFlagSet("table", flag.ContinueOnError)
	f.SetOutput(out)
	f.IntVar(&c.keys, "keys", 20_000_000, "`number` of keys")
	f.IntVar(&c.batches, "batches", 300, "mini-`batches` per phase")
	f.IntVar(&c.lookups, "lookups", 4096*26, "`lookups` per mini-batch, not unique")
	f.Float64Var(&c.s, "s", 1.125, "exponent of Zipf's law, above 1")
	f.Int64Var(&c.seed, "seed", 1, "seed of the mini-batches")
	f.IntVar(&c.layout.ValueDim, "value-dim", 16, "`values` of a row")
	f.IntVar(&c.layout.StateDim, "state-dim", 4, "float32 words of optimizer `state` of a row")
	f.StringVar(&budgets, "budget", "256MiB,64MiB,16MiB", "memory `budgets`, comma-separated: sizes, or shares of the bytes of all rows and keys such as 5%")
	f.StringVar(&phases, "phases", "p1,p2,p3", "`phases`, comma-separated: p1, p2, p3 (which runs p2, too), cached")
	f.StringVar(&names, "drivers", "all", "`stores`, comma-separated: "+strings.Join(driverNames(), ", "))
	f.IntVar(&c.getters, "getters", 64, "`reads` that peers have in flight")
	f.IntVar(&c.announce, "announce", 100, "largest number of `batches` that are announced ahead, to stores that look ahead; 0: none")
	f.StringVar(&policies, "policy", sparsetable.CachePolicies()[0], "cache `policies` of ssd, comma-separated, of which each is measured and which are then compared: all, "+strings.Join(sparsetable.CachePolicies(), ", "))
	f.Float64Var(&c.trainMS, "train-ms", 0, "`milliseconds` that a trainer takes for a mini-batch while the next one is pulled; 0: no trainer")
	f.Func("external", "also measure a store that is another program, `NAME=COMMAND`; may be given several times; see external/README.md", func(s string) error {
		d, err := parseExternal(s, append(drivers(), c.externals...))
		c.externals = append(c.externals, d)
		return err
	})
	f.IntVar(&c.parts, "parts", 1, "number of `parts` of each phase that are also reported by themselves")
	f.IntVar(&c.snapshotEvery, "snapshot-every", 0, "`batches` from one snapshot of ssd to the next, in p1, p2 and p3; 0: none")
	f.Float64Var(&c.deviceSeconds, "device-seconds", 2, "`seconds` of each measurement of the device's random reads by fio, before and after the phases; 0: none")
	f.StringVar(&c.dir, "dir", "", "`directory` for the stores, on the SSD to measure; default: a temporary one")
	f.BoolVar(&c.keep, "keep", false, "keep the stores' directories")
	f.StringVar(&c.jsonFile, "json", "", "also write the results to `FILE`")
	quick := f.Bool("quick", false, "a twentieth of keys, lookups and budget, 40 batches, the largest budget: about a minute; with budgets in percent, a quarter of the keys, 200 batches and all budgets")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	shares := strings.Contains(budgets, "%")
	if *quick {
		c.lookups, c.deviceSeconds = c.lookups/quickPart, min(c.deviceSeconds, 0.5)
		if shares {
			c.keys, c.batches = c.keys/quickSharePart, min(c.batches, quickShareBatches)
		} else {
			c.keys, c.batches = c.keys/quickPart, min(c.batches, 40)
		}
	}
	var err error
	if c.budgets, err = parseBudgets(budgets, c.tableBytes()); err != nil {
		return c, err
	}
	if *quick && !shares {
		c.budgets = []int64{slices.Max(c.budgets) / quickPart}
	}
	if c.policies, err = choose("policy", policies, sparsetable.CachePolicies()); err != nil {
		return c, err
	}
	if c.phases, err = choose("phases", phases, []string{phaseCold, phaseFull, phaseHot, phaseCached}); err != nil {
		return c, err
	}
	if c.drivers, err = choose("drivers", names, driverNames()); err != nil {
		return c, err
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
	check(c.trainMS >= 0 && c.trainMS <= 60_000, "trainer of %g ms: want 0 to 60000", c.trainMS)
	check(c.parts >= 1 && c.parts <= c.batches, "%d parts of %d batches to report: want 1 to as many as there are", c.parts, c.batches)
	check(c.snapshotEvery >= 0 && c.snapshotEvery <= c.batches, "a snapshot every %d of %d batches: want 0 to all", c.snapshotEvery, c.batches)
	check(c.deviceSeconds == 0 || c.deviceSeconds >= 0.01 && c.deviceSeconds <= 600, "%g seconds for a measurement of the device: want 0, or 0.01 to 600", c.deviceSeconds)
	check(c.layout.Validate() == nil, "%d values and %d words of state: no table has such rows", c.layout.ValueDim, c.layout.StateDim)
	return errors.Join(errs...)
}

// stores returns the names of the stores to be measured.
func (c *config) stores() []string {
	names := slices.Clone(c.drivers)
	for _, d := range c.externals {
		names = append(names, d.name)
	}
	return names
}

// driver returns the driver of a name that stores returned.
func (c *config) driver(name string) driver {
	for _, d := range c.externals {
		if d.name == name {
			return d
		}
	}
	return driverNamed(name)
}

// choose splits list and puts its elements in the order of known. "all" stands for all
// elements of known.
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

// tableBytes is the size of all rows and their keys.
func (c *config) tableBytes() int64 { return int64(c.keys) * int64(keyBytes+c.layout.Bytes()) }

// parseBudgets reads sizes, and shares of the whole.
func parseBudgets(list string, whole int64) ([]int64, error) {
	var budgets []int64
	for b := range strings.SplitSeq(list, ",") {
		if share, ok := strings.CutSuffix(b, "%"); ok {
			x, err := strconv.ParseFloat(share, 64)
			if err != nil || !(x > 0 && x <= 1000) {
				return nil, fmt.Errorf("--budget: %q is not a share such as 5%%", b)
			}
			budgets = append(budgets, int64(x/100*float64(whole)))
			continue
		}
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
