package trainer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/report"
)

// TestDeviceSummary checks that summary.json and the display show what each device does, also if
// several are on one physical device, and say nothing of devices if a job has none.
func TestDeviceSummary(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		set     string
		devices []int
	}{{"[0]", []int{0}}, {"[1, 0]", []int{1, 0}}, {"[1, 1]", []int{1, 1}}} {
		j := job(t, "dlrm", append(slices.Clone(onDevices), "engine.devices="+c.set)...)
		var shown []report.Device // while training
		s, err := trainOn(t, j, devices(seed, 2), func(o *Options) {
			o.afterPass = func(_ context.Context, r *run) error {
				shown = r.opts.Status.View().Devices
				return nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Devices) != len(c.devices) || len(shown) != len(c.devices) {
			t.Fatalf("devices %s: %d in the summary, %d in the display", c.set, len(s.Devices), len(shown))
		}
		for i, d := range s.Devices {
			if d.Device != c.devices[i] || d.Name != "emulated" || d.MemoryBytes != 64<<20 || d.MemoryUsedBytes == 0 || d.MemoryPeakBytes < d.MemoryUsedBytes {
				t.Errorf("devices %s: %+v", c.set, d)
			}
			if d.MeasuredSteps == 0 || d.StepSeconds <= 0 || d.BusyFraction <= 0 || d.BusyFraction > 1 || d.KernelLaunches == 0 || d.MatrixProducts == 0 {
				t.Errorf("devices %s: %+v", c.set, d)
			}
			if several := len(c.devices) > 1; several != (d.BetweenBytes > 0) || several != (d.AllReduceSeconds > 0) || d.AllReduceSeconds >= d.StepSeconds {
				t.Errorf("devices %s: %+v", c.set, d)
			}
			// What the display shows grows, until the evaluation has ended.
			if v := shown[i]; v.Device != d.Device || v.UploadedBytes <= 0 || v.UploadedBytes >= d.UploadedBytes || v.DownloadedBytes >= d.DownloadedBytes {
				t.Errorf("devices %s: display %+v, summary %+v", c.set, v, d)
			}
		}
		var stored report.Summary
		if err := json.Unmarshal([]byte(reportOfModel(t, j, report.SummaryName)), &stored); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(stored.Devices, s.Devices) {
			t.Errorf("summary.json has %+v, want %+v", stored.Devices, s.Devices)
		}
	}
	j := job(t, "lr", "training.max_examples=700")
	train(t, j)
	if strings.Contains(reportOfModel(t, j, report.SummaryName), `"devices"`) {
		t.Error("summary.json has devices")
	}
}
