package main

import (
	"encoding/json"
	"os"
)

// result is one phase of one store under one budget. Times are in milliseconds
// per mini-batch, sizes in bytes.
type result struct {
	Driver      string `json:"driver"`
	Phase       string `json:"phase"`
	BudgetBytes int64  `json:"budget_bytes"` // 0: none
	Unavailable string `json:"unavailable,omitempty"`
	Error       string `json:"error,omitempty"`

	Batches int     `json:"batches"`
	Unique  float64 `json:"unique_per_batch"`

	PullsPerSecond   float64 `json:"pulls_per_second"`   // unique keys by the time of pulls
	UpdatesPerSecond float64 `json:"updates_per_second"` // unique keys by the time of updates and pushes
	PullMS           float64 `json:"pull_ms_p50"`
	PushMS           float64 `json:"push_ms_p50"`
	BatchMS          float64 `json:"batch_ms_p50"` // pull and push
	BatchMSP99       float64 `json:"batch_ms_p99"`
	WaitShare        float64 `json:"wait_share"` // of the trainer's time; 0 without one

	DeviceReads        float64 `json:"device_reads_per_batch"` // of pulls, where the store tells them apart
	DeviceReadBytes    float64 `json:"device_read_bytes_per_batch"`
	DeviceWriteBytes   float64 `json:"device_write_bytes_per_batch"`
	WriteAmplification float64 `json:"write_amplification"` // bytes written, saving included, by bytes pushed

	BaseBytes int64 `json:"base_memory_bytes"`  // resident before the store was opened
	PeakBytes int64 `json:"peak_memory_bytes"`  // resident at most, in all
	StorePeak int64 `json:"store_memory_bytes"` // the latter less the former
	DiskBytes int64 `json:"disk_bytes"`         // after saving

	OpenMS float64 `json:"open_ms"`
	SaveMS float64 `json:"save_ms"`
	LoadMS float64 `json:"load_ms,omitempty"` // of phase load: everything but saving

	Digest string         `json:"digest,omitempty"` // of all rows pulled; the same for all stores
	Store  map[string]any `json:"store,omitempty"`  // the store's own counters

	// TimesRocksDB is how many times as fast a mini-batch is as RocksDB's in
	// the same phase under the same budget; 0 without RocksDB.
	TimesRocksDB      float64 `json:"times_rocksdb,omitempty"`
	PullsTimesRocksDB float64 `json:"pulls_times_rocksdb,omitempty"`
	TimesP2           float64 `json:"times_p2,omitempty"` // of phase p3, by the same store's p2
	DigestDiffers     bool    `json:"digest_differs,omitempty"`
}

// measured says that the figures hold.
func (r *result) measured() bool { return r.Error == "" && r.Unavailable == "" }

// report is what --json writes.
type report struct {
	Keys     int               `json:"keys"`
	Batches  int               `json:"batches"`
	Lookups  int               `json:"lookups"`
	S        float64           `json:"s"`
	Seed     int64             `json:"seed"`
	RowBytes int               `json:"row_bytes"`
	Getters  int               `json:"getters"`
	Announce int               `json:"announce"`
	Policy   string            `json:"policy"` // of ssd
	TrainMS  float64           `json:"train_ms"`
	CPUs     int               `json:"cpus"`
	Drivers  map[string]string `json:"drivers"` // how each was set up
	Results  []result          `json:"results"`
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
	find := func(driver, phase string, budget int64) *result {
		for i := range results {
			if r := &results[i]; r.Driver == driver && r.Phase == phase && r.BudgetBytes == budget && r.measured() {
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
		if rocks := find(rocksDriver.name, r.Phase, r.BudgetBytes); rocks != nil && r.BatchMS > 0 && rocks.PullsPerSecond > 0 {
			r.TimesRocksDB = rocks.BatchMS / r.BatchMS
			r.PullsTimesRocksDB = r.PullsPerSecond / rocks.PullsPerSecond
		}
		if p2 := find(r.Driver, phaseFull, r.BudgetBytes); p2 != nil && r.Phase == phaseHot && r.BatchMS > 0 {
			r.TimesP2 = p2.BatchMS / r.BatchMS
		}
		if first, ok := digests[r.Phase]; ok && first != r.Digest {
			r.DigestDiffers = true
		} else {
			digests[r.Phase] = r.Digest
		}
	}
}
