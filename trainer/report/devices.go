package report

import (
	"math"
	"time"

	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
)

// Device is what a device has done since the run began or was resumed, in training and in
// evaluations. A physical device that engine.devices names several times has several.
type Device struct {
	Device int    `json:"device"` // number of the physical device
	Name   string `json:"name"`

	// Of the physical device, including other users.
	MemoryBytes     int64 `json:"memory_bytes"`
	MemoryUsedBytes int64 `json:"memory_used_bytes"`      // after the latest pass
	MemoryPeakBytes int64 `json:"memory_used_peak_bytes"` // the most in use after a pass

	UploadedBytes   int64 `json:"uploaded_bytes"`        // from the memory of the host
	DownloadedBytes int64 `json:"downloaded_bytes"`      // to it
	BetweenBytes    int64 `json:"between_devices_bytes"` // between devices, to add up gradients and, with rows on the devices, to exchange rows

	// Rows of passes, if they are on the devices:
	RowsUploaded   int64 `json:"rows_uploaded,omitempty"`      // from the memory of the host
	RowsLate       int64 `json:"rows_uploaded_late,omitempty"` // of these, rows that the device waited for, since their copy had not begun when their pass did
	RowsKept       int64 `json:"rows_kept,omitempty"`          // already there, from the pass before
	RowsDownloaded int64 `json:"rows_downloaded,omitempty"`
	// RowsWaitSeconds is how long training waited, at the beginning of passes, until the rows were
	// on all devices.
	RowsWaitSeconds float64 `json:"rows_wait_seconds,omitempty"`

	KernelLaunches int64 `json:"kernel_launches"`
	MatrixProducts int64 `json:"matrix_products"`

	// Means over the measured training steps, about one in 31; 0 if none was measured.
	MeasuredSteps    int64   `json:"measured_steps"`
	StepSeconds      float64 `json:"step_seconds"`
	BusyFraction     float64 `json:"busy_fraction"`      // of the time during which the device was at work, including sums
	AllReduceSeconds float64 `json:"all_reduce_seconds"` // per step, in sums over all devices, including the wait for other devices
}

// DevicesOf returns what the devices of an engine have done; nil if it has none.
func DevicesOf(e engine.Engine) []Device {
	c, ok := e.(*cuda.Engine)
	if !ok {
		return nil
	}
	var all []Device
	for _, s := range c.Stats() {
		all = append(all, Device{
			Device: s.Number, Name: s.Name, MemoryBytes: s.MemoryBytes, MemoryUsedBytes: s.UsedBytes, MemoryPeakBytes: s.PeakBytes,
			UploadedBytes: s.UploadedBytes, DownloadedBytes: s.DownloadedBytes, BetweenBytes: s.BetweenBytes,
			RowsUploaded: s.Rows.Uploaded, RowsLate: s.Rows.Late, RowsKept: s.Rows.Kept, RowsDownloaded: s.Rows.Downloaded, RowsWaitSeconds: s.RowsWait.Seconds(),
			KernelLaunches: s.Launches, MatrixProducts: s.Products,
			MeasuredSteps: s.SampledSteps, StepSeconds: s.Step().Seconds(), BusyFraction: math.Round(1e4*s.Busy()) / 1e4,
			AllReduceSeconds: s.Sum().Seconds(),
		})
	}
	return all
}

// Step returns the time of a training step.
func (s *Device) Step() time.Duration { return seconds(s.StepSeconds) }

// AllReduce returns the time that a step spends in sums over the devices.
func (s *Device) AllReduce() time.Duration { return seconds(s.AllReduceSeconds) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
