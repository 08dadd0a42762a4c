package cuda

import (
	"sync/atomic"
	"time"

	"aibox/gpu"
	"aibox/trainer/engine/devicerows"
)

// DeviceStats is what the engine has done on a device since New, in training and inference.
type DeviceStats struct {
	Number int // of the physical device
	Name   string

	// Of the physical device, shared with other programs. Usage is sampled between passes.
	MemoryBytes int64 // total
	UsedBytes   int64 // in use after the latest pass
	PeakBytes   int64 // largest UsedBytes so far

	UploadedBytes   int64 // copied from the memory of the host
	DownloadedBytes int64 // copied to the memory of the host
	BetweenBytes    int64 // copied between memories of devices by operations of this one
	Launches        int64 // kernel launches
	Products        int64 // matrix products

	Rows     devicerows.Traffic // of passes, if rows are on the devices
	RowsWait time.Duration      // time passes have waited for their rows, the same on all devices

	// These are measured with events, by the clock of the device, in a sample of the training
	// steps. The time of a step is from the end of the previous step to its own end.
	SampledSteps int64
	SampledTime  time.Duration // of these steps, with gaps between passes
	BusyTime     time.Duration // from the arrival of a step's inputs to its end
	SumTime      time.Duration // in all-reduces, with waits for other devices; partly concurrent with computation
}

// Busy is the share of the time in which the device computes, from 0 to 1; 0 before a step was sampled.
func (s *DeviceStats) Busy() float64 {
	if s.SampledTime <= 0 {
		return 0
	}
	return float64(s.BusyTime) / float64(s.SampledTime)
}

// Step is the mean time of a step of training; 0 before one was sampled.
func (s *DeviceStats) Step() time.Duration {
	return s.SampledTime / time.Duration(max(1, s.SampledSteps))
}

// Sum is the mean time of the all-reduces in a training step; 0 for one device. Those of gradient
// buckets, except the last, lengthen the step by less, since they overlap with computation.
func (s *DeviceStats) Sum() time.Duration { return s.SumTime / time.Duration(max(1, s.SampledSteps)) }

// Stats returns the statistics of each device, in the order of Options.Devices. It may be called
// from any goroutine, also after Close.
func (e *Engine) Stats() []DeviceStats {
	all := make([]DeviceStats, len(e.counters))
	for i, c := range e.counters {
		all[i] = DeviceStats{
			Number: c.number, Name: c.info.Name, MemoryBytes: c.info.MemoryBytes, UsedBytes: c.used.Load(), PeakBytes: c.peak.Load(),
			UploadedBytes: c.counts[uploaded].Load(), DownloadedBytes: c.counts[downloaded].Load(), BetweenBytes: c.counts[between].Load(),
			Launches: c.counts[launches].Load(), Products: c.counts[products].Load(),
			SampledSteps: c.sampled.Load(), SampledTime: time.Duration(c.wall.Load()), BusyTime: time.Duration(c.busy.Load()),
			SumTime: time.Duration(c.sums.Load()),
		}
		if e.held != nil {
			all[i].Rows, all[i].RowsWait = e.held.Traffic(i), e.held.Waited()
		}
	}
	return all
}

// counters are the counters of a device. One goroutine adds to them; any may read them.
type counters struct {
	number int
	info   gpu.Info

	counts           tally[atomic.Int64]
	used, peak       atomic.Int64 // bytes
	sampled          atomic.Int64 // steps
	wall, busy, sums atomic.Int64 // nanoseconds
}

// tally is one count for each of the constants below.
type tally[T any] [5]T

// Indexes of a tally: the first three count bytes, the others operations.
const (
	uploaded = iota
	downloaded
	between
	launches
	products
)

func newCounters(dev gpu.Device) *counters { return &counters{number: dev.Number(), info: dev.Info()} }

// lookAtMemory records how much memory of each device is in use.
func (e *Engine) lookAtMemory() error {
	for _, r := range e.replicas {
		free, total, err := r.dev.FreeMemory()
		if err != nil {
			return err
		}
		r.counters.used.Store(total - free)
		r.counters.peak.Store(max(r.counters.peak.Load(), total-free))
	}
	return nil
}
