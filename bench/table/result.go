package main

import (
	"encoding/json"
	"os"
)

// result is one phase of one store under one budget. Times are in milliseconds
// per mini-batch, sizes in bytes.
type result struct {
	Driver      string `json:"driver"`
	Policy      string `json:"policy,omitempty"` // of the store's cache, where several are compared
	Phase       string `json:"phase"`
	BudgetBytes int64  `json:"budget_bytes"` // 0: none
	Unavailable string `json:"unavailable,omitempty"`
	Error       string `json:"error,omitempty"`

	figures
	// Parts has the same figures for each of the parts that --parts asks for: a store is
	// in its steady state only when its cache is full.
	Parts []figures `json:"parts,omitempty"`

	WriteAmplification float64 `json:"write_amplification"` // bytes written, saving included, by bytes pushed

	BaseBytes int64 `json:"base_memory_bytes"`  // resident before the store was opened
	PeakBytes int64 `json:"peak_memory_bytes"`  // resident at most, in all
	StorePeak int64 `json:"store_memory_bytes"` // PeakBytes less BaseBytes
	DiskBytes int64 `json:"disk_bytes"`         // after saving

	OpenMS float64 `json:"open_ms"`
	SaveMS float64 `json:"save_ms"`
	LoadMS float64 `json:"load_ms,omitempty"` // of phase load: everything but saving

	Digest string         `json:"digest,omitempty"` // of all rows pulled; the same for all stores
	Store  map[string]any `json:"store,omitempty"`  // the store's own counters

	DigestDiffers bool `json:"digest_differs,omitempty"`
}

// measured says whether the figures are valid.
func (r *result) measured() bool { return r.Error == "" && r.Unavailable == "" }

// name identifies the result's store.
func (r *result) name() string {
	if r.Policy == "" {
		return r.Driver
	}
	return r.Driver + " " + r.Policy
}

// report is what --json writes.
type report struct {
	Keys          int               `json:"keys"`
	Batches       int               `json:"batches"`
	Lookups       int               `json:"lookups"`
	S             float64           `json:"s"`
	Seed          int64             `json:"seed"`
	RowBytes      int               `json:"row_bytes"`
	Getters       int               `json:"getters"`
	Announce      int               `json:"announce"`
	Policy        string            `json:"policy"` // of ssd
	TrainMS       float64           `json:"train_ms"`
	SnapshotEvery int               `json:"snapshot_every"` // mini-batches
	CPUs          int               `json:"cpus"`
	Drivers       map[string]string `json:"drivers"` // how each was set up
	Device        []deviceRate      `json:"device,omitempty"`
	Results       []result          `json:"results"`
}

func (r *report) write(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o666)
}

// compare fills the ratios between results.
func compare(results []result) {
	find := func(name, phase string, budget int64) *result {
		for i := range results {
			if r := &results[i]; r.name() == name && r.Phase == phase && r.BudgetBytes == budget && r.measured() {
				return r
			}
		}
		return nil
	}
	digests := map[string]string{} // the first of each phase
	for i := range results {
		r := &results[i]
		if !r.measured() {
			continue
		}
		if rocks := find(rocksDriver.name, r.Phase, r.BudgetBytes); rocks != nil {
			r.besideRocksDB(rocks.figures)
			for p := range r.Parts {
				r.Parts[p].besideRocksDB(rocks.Parts[p])
			}
		}
		if p2 := find(r.name(), phaseFull, r.BudgetBytes); p2 != nil && r.Phase == phaseHot {
			r.besideP2(p2.figures)
			for p := range r.Parts {
				r.Parts[p].besideP2(p2.Parts[p])
			}
		}
		if first, ok := digests[r.Phase]; ok && first != r.Digest {
			r.DigestDiffers = true
		} else {
			digests[r.Phase] = r.Digest
		}
	}
}
