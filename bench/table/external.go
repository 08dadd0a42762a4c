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
	"strings"
	"time"
)

// externalJob is what an external store's process reads from its standard input;
// external/README.md describes the protocol.
type externalJob struct {
	Phase       string  `json:"phase"`
	Dir         string  `json:"dir"`
	Trace       string  `json:"trace"` // file of the mini-batches' keys; see keyFile
	BudgetBytes int64   `json:"budget_bytes"`
	ValueDim    int     `json:"value_dim"`
	StateDim    int     `json:"state_dim"`
	Keys        int     `json:"keys"`
	Batches     int     `json:"batches"`
	Getters     int     `json:"getters"`
	TrainMS     float64 `json:"train_ms"`
}

// externalResult is what it prints. Lists have an element per mini-batch.
type externalResult struct {
	Error       string `json:"error"`
	Unavailable string `json:"unavailable"`

	OpenMS float64 `json:"open_ms"`
	LoadMS float64 `json:"load_ms"`
	SaveMS float64 `json:"save_ms"`

	PullMS      []float64 `json:"pull_ms"`
	PushMS      []float64 `json:"push_ms"`
	DeviceReads []int64   `json:"device_reads"`
	ReadBytes   []int64   `json:"read_bytes"`
	WriteBytes  []int64   `json:"write_bytes"`

	SavedWriteBytes int64          `json:"saved_write_bytes"` // of all mini-batches and saving
	BaseBytes       int64          `json:"base_bytes"`
	PeakBytes       int64          `json:"peak_bytes"`
	Digest          string         `json:"digest"`
	Store           map[string]any `json:"store"`
}

// parseExternal reads NAME=COMMAND. The command's words are separated by spaces.
func parseExternal(s string, known []driver) (driver, error) {
	name, command, _ := strings.Cut(s, "=")
	words := strings.Fields(command)
	switch {
	case name == "" || len(words) == 0:
		return driver{}, fmt.Errorf("%q: want NAME=COMMAND", s)
	case strings.ContainsAny(name, "/, \t"):
		return driver{}, fmt.Errorf("the name %q must not have a slash, a comma or a space", name)
	case slices.ContainsFunc(known, func(d driver) bool { return d.name == name }):
		return driver{}, fmt.Errorf("there is already a store named %q", name)
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return driver{}, err
	}
	if words[0], err = filepath.Abs(path); err != nil {
		return driver{}, err
	}
	return driver{name: name, about: "another program: " + strings.Join(words, " "), command: words}, nil
}

// runExternal plays a phase of a store that is another program.
func (j *job) runExternal(ctx context.Context, command []string) (r result, err error) {
	r = result{Driver: j.Driver, Phase: j.Phase, BudgetBytes: j.BudgetBytes}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return r, err
	}
	keys := j.Dir + ".keys"
	unique, err := j.writeKeys(keys)
	if err != nil {
		return r, fmt.Errorf("keys for %s: %w", j.Driver, err)
	}
	defer func() { err = errors.Join(err, os.Remove(keys)) }()
	if j.Phase == phaseFull {
		if err := dropPageCache(j.Dir); err != nil {
			return r, fmt.Errorf("drop the page cache: %w", err)
		}
	}
	arg, err := json.Marshal(externalJob{
		Phase: j.Phase, Dir: j.Dir, Trace: keys, BudgetBytes: j.BudgetBytes, ValueDim: j.Layout.ValueDim, StateDim: j.Layout.StateDim,
		Keys: j.Keys, Batches: j.Batches, Getters: j.Getters, TrainMS: ms(j.Train),
	})
	if err != nil {
		return r, err
	}
	var out bytes.Buffer
	child := exec.CommandContext(ctx, command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(append(arg, '\n')), &out, os.Stderr
	if err := child.Run(); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Error = fmt.Sprintf("the process ended: %v", err)
		return r, nil
	}
	var x externalResult
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		r.Error = fmt.Sprintf("its result cannot be read: %v", err)
		return r, nil
	}
	return r, j.take(&x, unique, &r)
}

// take fills r from what an external store printed.
func (j *job) take(x *externalResult, unique []int, r *result) (err error) {
	r.Error, r.Unavailable = x.Error, x.Unavailable
	if !r.measured() {
		return nil
	}
	r.OpenMS, r.LoadMS, r.SaveMS, r.Store = x.OpenMS, x.LoadMS, x.SaveMS, x.Store
	r.BaseBytes, r.PeakBytes, r.StorePeak = x.BaseBytes, x.PeakBytes, x.PeakBytes-x.BaseBytes
	if r.DiskBytes, err = diskBytes(j.Dir); err != nil {
		return err
	}
	if j.Phase == phaseLoad {
		r.UpdatesPerSecond = float64(j.Keys) / (r.LoadMS / 1e3)
		return nil
	}
	for name, n := range map[string]int{"pull_ms": len(x.PullMS), "push_ms": len(x.PushMS),
		"device_reads": len(x.DeviceReads), "read_bytes": len(x.ReadBytes), "write_bytes": len(x.WriteBytes)} {
		if n != len(unique) {
			r.Error = fmt.Sprintf("its result has %d elements in %s, want one for each of %d mini-batches", n, name, len(unique))
			return nil
		}
	}
	m := measurement{}
	for b := range unique {
		m.add(duration(x.PullMS[b]), duration(x.PushMS[b]))
		m.pulled = append(m.pulled, x.PullMS[b])
	}
	r.Batches, r.Digest = len(unique), x.Digest
	during := func(from, to int) traffic {
		return traffic{reads: sum(x.DeviceReads[from:to]), readBytes: sum(x.ReadBytes[from:to]), writeBytes: sum(x.WriteBytes[from:to])}
	}
	r.figures = m.figures(unique, 0, len(unique), during(0, len(unique)))
	r.addParts(&m, unique, j.Parts, func(part int) traffic {
		return during(partStart(len(unique), j.Parts, part), partStart(len(unique), j.Parts, part+1))
	})
	r.WriteAmplification = float64(x.SavedWriteBytes) / (r.Unique * float64(r.Batches) * float64(keyBytes+j.Layout.Bytes()))
	return nil
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func sum(list []int64) (s int64) {
	for _, n := range list {
		s += n
	}
	return s
}
