package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// childArg makes the command a child process; its job follows.
const childArg = "-child"

// cell is a store under a budget, whose phases share a directory.
type cell struct {
	driver driver
	budget int64
	dir    string
	phases []string
	// policies are the cache policies with which the phases are run; "" for stores that have
	// none.
	policies []string
}

// cells lists the cells to run. Stores without a budget run once.
func (c *config) cells() []cell {
	var cells []cell
	for i, budget := range c.budgets {
		for _, name := range c.stores() {
			d := c.driver(name)
			if d.inMemory && i > 0 {
				continue
			}
			if slices.Contains(c.phases, phaseCold) {
				cells = append(cells, c.cell(d, budget, "cold", phaseCold))
			}
			if p := c.fullPhases(d); p != nil {
				cells = append(cells, c.cell(d, budget, "full", p...))
			}
		}
	}
	if slices.Contains(c.phases, phaseCached) {
		budget := slices.Max(c.budgets) // it only decides how many keys there are
		for _, name := range c.stores() {
			if d := c.driver(name); d.shared {
				cells = append(cells, c.cell(d, budget, "cached", phaseCached))
			}
		}
	}
	return cells
}

// fullPhases are the phases of a full store.
func (c *config) fullPhases(d driver) []string {
	hot := d.restoresHot && slices.Contains(c.phases, phaseHot)
	switch {
	case hot:
		return []string{phaseLoad, phaseFull, phaseHot}
	case !slices.Contains(c.phases, phaseFull):
		return nil
	case d.inMemory:
		return []string{phaseFull}
	}
	return []string{phaseLoad, phaseFull}
}

// cell of a driver's phases under a budget.
func (c *config) cell(d driver, budget int64, suffix string, phases ...string) cell {
	name := fmt.Sprintf("%s-%d-%s", d.name, budget, suffix)
	x := cell{driver: d, budget: budget, dir: filepath.Join(c.dir, name), phases: phases, policies: []string{""}}
	if d.policies {
		x.policies = c.policies
	}
	return x
}

// run runs the phases of a cell with every policy, each as a process, and passes their results to
// got. Phases after a failed one are skipped.
func (c *config) run(ctx context.Context, x cell, got func(result)) (err error) {
	if err := os.Mkdir(x.dir, 0o777); err != nil {
		return err // also if the directory exists: a store of another run would falsify the figures
	}
	if !c.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(x.dir)) }()
	}
	store := filepath.Join(x.dir, "store")
	if len(x.policies) == 1 {
		_, err := c.runPhases(ctx, x, store, x.policies[0], x.phases, got)
		return err
	}
	loaded := x.phases[0] == phaseLoad
	if loaded {
		// Loading takes longer than the phases that follow, and no policy plays a part in it.
		if ok, err := c.runPhases(ctx, x, store, x.policies[0], x.phases[:1], got); !ok || err != nil {
			return err
		}
		x.phases = x.phases[1:]
	}
	for _, policy := range x.policies {
		dir := store + "-" + policy
		if loaded {
			if err := os.CopyFS(dir, os.DirFS(store)); err != nil {
				return err
			}
		}
		if _, err := c.runPhases(ctx, x, dir, policy, x.phases, got); err != nil {
			return err
		}
		if !c.keep {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// runPhases runs phases of a cell, and reports whether none has failed.
func (c *config) runPhases(ctx context.Context, x cell, dir, policy string, phases []string, got func(result)) (ok bool, err error) {
	for _, phase := range phases {
		r, err := c.runPhase(ctx, x, dir, policy, phase)
		if err != nil {
			return false, err
		}
		if len(x.policies) > 1 && phase != phaseLoad {
			r.Policy = policy
		}
		got(r)
		if !r.measured() {
			return false, nil
		}
	}
	return true, nil
}

func (c *config) runPhase(ctx context.Context, x cell, dir, policy, phase string) (result, error) {
	j := job{
		Driver: x.driver.name, Phase: phase, Dir: dir, BudgetBytes: x.budget, Layout: c.layout,
		Keys: c.keys, Batches: c.batches, Lookups: c.lookups, S: c.s, Seed: c.seed,
		Getters: c.getters, Announce: c.announce, Policy: policy, Train: duration(c.trainMS),
		Parts: c.parts, SnapshotEvery: c.snapshotEvery,
	}
	if x.driver.command != nil {
		return j.runExternal(ctx, x.driver.command)
	}
	arg, err := json.Marshal(j)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	var out bytes.Buffer
	child := exec.CommandContext(ctx, self, childArg, string(arg))
	child.Stdout, child.Stderr = &out, os.Stderr
	if err := child.Run(); err != nil {
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		// The child crashed, or the kernel killed it for its memory. Other stores go on.
		r := result{Driver: j.Driver, Phase: phase, Error: fmt.Sprintf("the process ended: %v", err)}
		if !x.driver.inMemory {
			r.BudgetBytes = x.budget
		}
		return r, nil
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("result of %s %s: %w", j.Driver, phase, err)
	}
	return r, nil
}
