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

	// Of the physical device, with all that it has from others, between the passes.
	MemoryBytes int64 // all
	UsedBytes   int64 // in use after the latest pass
	PeakBytes   int64 // the most that was

	UploadedBytes   int64 // copied from the memory of the host
	DownloadedBytes int64 // copied to the memory of the host
	BetweenBytes    int64 // copied between memories of devices by operations of this one
	Launches        int64 // of kernels
	Products        int64 // of matrices

	Rows     devicerows.Traffic // of passes, if rows are on the devices
	RowsWait time.Duration      // that passes have waited for their rows, on all devices together

	// These are measured with events, by the clock of the device, in a sample of the steps of
	// training. A step is here the time from the end of the step before to its own.
	SampledSteps int64
	SampledTime  time.Duration // of these steps, with what lay between two passes
	BusyTime     time.Duration // in which the compute stream was at work, or between two operations of one step
	SumTime      time.Duration // in sums over the devices, with waits for others; during some of them the compute stream is at work
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

// Sum is the mean time of the sums over the devices in a step of training; 0 for one device. Sums
// of gradients, but for the last one, lengthen the step by less than that: other gradients are
// computed meanwhile.
func (s *DeviceStats) Sum() time.Duration { return s.SumTime / time.Duration(max(1, s.SampledSteps)) }

// Stats returns what was done on each device, in the order of Options.Devices. It may be called
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

// counters are those of a device. One goroutine adds to them.
type counters struct {
	number int
	info   gpu.Info

	counts           tally[atomic.Int64]
	used, peak       atomic.Int64 // bytes
	sampled          atomic.Int64 // steps
	wall, busy, sums atomic.Int64 // nanoseconds
}

// tally counts, by what is counted.
type tally[T any] [5]T

// What is counted: bytes, and calls.
const (
	uploaded = iota
	downloaded
	between
	launches
	products
)

func newCounters(dev gpu.Device) *counters { return &counters{number: dev.Number(), info: dev.Info()} }

// lookAtMemory notes how much of the devices' memory is in use.
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
