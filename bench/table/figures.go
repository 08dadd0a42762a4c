package main

import "aibox/internal/process"

// figures are the results of a run of mini-batches, per mini-batch; times are in
// milliseconds.
type figures struct {
	Batches int     `json:"batches"`
	Unique  float64 `json:"unique_per_batch"`

	Seconds          float64 `json:"seconds"`            // of all pulls, updates and pushes
	CPUSeconds       float64 `json:"cpu_seconds"`        // of the whole process meanwhile
	PullsPerSecond   float64 `json:"pulls_per_second"`   // unique keys by the time of pulls
	UpdatesPerSecond float64 `json:"updates_per_second"` // unique keys by the time of updates and pushes
	PullMS           float64 `json:"pull_ms_p50"`
	PushMS           float64 `json:"push_ms_p50"`
	BatchMS          float64 `json:"batch_ms_p50"` // pull and push
	BatchMSP99       float64 `json:"batch_ms_p99"`
	WaitShare        float64 `json:"wait_share"` // of the trainer's time; 0 without one

	DeviceReads      float64 `json:"device_reads_per_batch"` // of pulls, where the store tells them apart
	DeviceReadBytes  float64 `json:"device_read_bytes_per_batch"`
	DeviceWriteBytes float64 `json:"device_write_bytes_per_batch"`
	ReadsPerSecond   float64 `json:"device_reads_per_second"` // while pulling
	DeviceShare      float64 `json:"device_share,omitempty"`  // of what the device alone was measured to take

	Snapshots      int     `json:"snapshots,omitempty"`
	SnapshotShare  float64 `json:"snapshot_share,omitempty"`           // of the time, in calls that start snapshots
	BesideBatchMS  float64 `json:"batch_ms_beside_snapshot,omitempty"` // median of the batches while one is written
	BetweenBatchMS float64 `json:"batch_ms_between_snapshots,omitempty"`

	// TimesRocksDB is how many times as fast a mini-batch is as RocksDB's in
	// the same phase under the same budget; 0 without RocksDB.
	TimesRocksDB      float64 `json:"times_rocksdb,omitempty"`
	PullsTimesRocksDB float64 `json:"pulls_times_rocksdb,omitempty"`
	TimesP2           float64 `json:"times_p2,omitempty"` // of phase p3, by the same store's p2
}

func (f *figures) besideRocksDB(rocks figures) {
	if f.BatchMS > 0 && rocks.PullsPerSecond > 0 {
		f.TimesRocksDB = rocks.BatchMS / f.BatchMS
		f.PullsTimesRocksDB = f.PullsPerSecond / rocks.PullsPerSecond
	}
}

func (f *figures) besideP2(p2 figures) {
	if f.BatchMS > 0 {
		f.TimesP2 = p2.BatchMS / f.BatchMS
	}
}

// traffic is reads of devices and bytes from and to them.
// The processor time is that of the process, in nanoseconds.
type traffic struct{ reads, readBytes, writeBytes, cpu int64 }

func (t traffic) minus(u traffic) traffic {
	return traffic{t.reads - u.reads, t.readBytes - u.readBytes, t.writeBytes - u.writeBytes, t.cpu - u.cpu}
}

// sample counts a store's traffic so far, and that of its process.
func sample(s store) (traffic, error) {
	io, err := readProcIO()
	if err != nil {
		return traffic{}, err
	}
	reads := s.Counters().DeviceReads
	if reads < 0 {
		reads = io.ReadCalls
	}
	cpu, err := process.ProcessorTime()
	return traffic{reads, io.ReadBytes, io.WriteBytes, cpu.Nanoseconds()}, err
}

// figures returns the figures of the mini-batches from ≤ b < to. unique has the numbers
// of keys of all mini-batches, and during is the device traffic of those from ≤ b < to.
func (m *measurement) figures(unique []int, from, to int, during traffic) figures {
	keys := 0
	for _, n := range unique[from:to] {
		keys += n
	}
	n := float64(to - from)
	f := figures{
		Batches: to - from, Unique: float64(keys) / n,
		PullMS: median(m.pull[from:to]), PushMS: median(m.push[from:to]),
		BatchMS: median(m.batch[from:to]), BatchMSP99: percentile(m.batch[from:to], 0.99),
		DeviceReads: float64(during.reads) / n, DeviceReadBytes: float64(during.readBytes) / n, DeviceWriteBytes: float64(during.writeBytes) / n,
	}
	if pulled := total(m.pulled[from:to]) / 1e3; pulled > 0 {
		f.PullsPerSecond, f.ReadsPerSecond = float64(keys)/pulled, float64(during.reads)/pulled
	}
	if push := total(m.push[from:to]) / 1e3; push > 0 {
		f.UpdatesPerSecond = float64(keys) / push
	}
	f.Seconds, f.CPUSeconds = total(m.batch[from:to])/1e3, float64(during.cpu)/1e9
	whole := total(m.whole[min(from, len(m.whole)):min(to, len(m.whole))])
	if m.trained && whole > 0 {
		f.WaitShare = (total(m.pull[from:to]) + total(m.stored[from:to])) / whole
	}
	if len(m.snapshot) > 0 {
		m.snapshotFigures(&f, from, to, whole)
	}
	return f
}

// snapshotFigures fills in what snapshots cost.
func (m *measurement) snapshotFigures(f *figures, from, to int, whole float64) {
	var beside, between []float64
	for b := from; b < to; b++ {
		if m.beside[b] {
			beside = append(beside, m.batch[b])
		} else {
			between = append(between, m.batch[b])
		}
		if m.snapshot[b] > 0 {
			f.Snapshots++
		}
	}
	f.SnapshotShare = total(m.snapshot[from:to]) / whole
	f.BesideBatchMS, f.BetweenBatchMS = median(beside), median(between)
}

func total(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}
