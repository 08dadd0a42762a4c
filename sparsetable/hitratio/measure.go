package hitratio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"aibox/internal/panics"
)

// Result is the hit ratio of a policy under a budget.
type Result struct {
	Policy    string  `json:"policy"`
	BudgetMiB float64 `json:"budget_mib"`
	Rows      int     `json:"rows"` // that the policy could keep
	HitRatio  float64 `json:"hit_ratio"`
	OfMIN     float64 `json:"of_min"`
	Seconds   float64 `json:"seconds"`         // duration of both phases
	Error     string  `json:"error,omitempty"` // why there are no figures: the budget is too small
}

func (c config) validate() error {
	if c.keys < 2 || c.keys > math.MaxUint32 || c.batches < 1 || c.batches > 32_000 || c.lookups < 1 || c.s <= 1 || c.valueBytes < 4 || c.valueBytes%4 != 0 || c.window < 0 {
		return errors.New("a number is out of range: want 2 to 2^32-1 keys, 1 to 32,000 batches, at least 1 lookup, an exponent above 1, rows of a multiple of 4 bytes, a window of 0 or more")
	}
	return nil
}

// measure runs the policies that the configuration selects, budget after budget, as many at a time
// as there are processors. It passes the results to got in order, MIN first.
func (c config) measure(ctx context.Context, t *trace, got func(Result)) error {
	for _, mib := range c.budgetsMiB {
		var list []policyRun
		for _, con := range policies(c) {
			if con.name == "MIN" || strings.Contains(con.name, c.only) {
				list = append(list, con)
			}
		}
		results := make([]chan Result, len(list))
		for i := range results {
			results[i] = make(chan Result, 1)
		}
		var running errgroup.Group
		running.SetLimit(runtime.GOMAXPROCS(0) + 1)
		running.Go(func() error {
			defer panics.Exit("reporting hit ratios")
			best := 0.0
			for i, con := range list {
				select {
				case r := <-results[i]:
					if con.name == "MIN" {
						best = r.HitRatio
					}
					if best > 0 && r.Error == "" {
						r.OfMIN = r.HitRatio / best
					}
					got(r)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		for i, con := range list {
			running.Go(func() error {
				defer panics.Exit("measuring a hit ratio")
				if ctx.Err() == nil {
					results[i] <- con.measure(t, mib, c.valueBytes+8)
				}
				return nil
			})
		}
		if err := running.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a policy under a budget.
func (con policyRun) measure(t *trace, mib float64, rowBytes int) Result {
	began := time.Now()
	hits, kept, err := con.run(t, int(mib*(1<<20)/float64(rowBytes)), int64(mib*(1<<20)))
	r := Result{Policy: con.name, BudgetMiB: mib, Seconds: time.Since(began).Seconds()}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Rows, r.HitRatio = kept, float64(hits)/float64(t.counted())
	return r
}

// policyRun is a policy to be measured. run returns the hits of the second phase and the number of
// rows that it could keep.
type policyRun struct {
	name string
	run  func(t *trace, rows int, bytes int64) (hits int64, kept int, err error)
}

func policies(c config) []policyRun {
	list := []policyRun{
		{"MIN", func(t *trace, rows int, _ int64) (int64, int, error) { return belady(t, rows), rows, nil }},
		{"bound: popularity", func(t *trace, rows int, _ int64) (int64, int, error) { return popularity(t, rows), rows, nil }},
		{fmt.Sprintf("bound: window %d", c.window), func(t *trace, rows int, _ int64) (int64, int, error) {
			return windowBound(t, rows, c.window), rows, nil
		}},
		{"LFU, all history", func(t *trace, rows int, _ int64) (int64, int, error) { return lfu(t, rows), rows, nil }},
		{"W-TinyLFU (otter)", tinyLFU},
	}
	return append(list, ours(c)...)
}
