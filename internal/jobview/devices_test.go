package jobview

import (
	"bytes"
	"strings"
	"testing"

	"aibox/internal/terminal"
	"aibox/trainer/report"
)

// devices are what n devices have done.
func devices(n int) []report.Device {
	all := []report.Device{
		{
			Device: 0, Name: "NVIDIA A100", MemoryBytes: 40 << 30, MemoryUsedBytes: 3 << 30, UploadedBytes: 20 << 30, DownloadedBytes: 5 << 30,
			KernelLaunches: 1000, MatrixProducts: 100, MeasuredSteps: 12, StepSeconds: 0.0098131, BusyFraction: 0.6234,
		},
		{Device: 3, Name: "NVIDIA A100", MemoryBytes: 40 << 30, MemoryUsedBytes: 2 << 30, UploadedBytes: 19 << 30, DownloadedBytes: 4 << 30},
	}[:n]
	if n > 1 {
		all[0].AllReduceSeconds, all[0].BetweenBytes, all[1].BetweenBytes = 0.001234, 7<<30, 7<<30
	}
	return all
}

func TestDevices(t *testing.T) {
	v := trainingView()
	v.Devices = devices(2)
	lines := block(v, 0, 120)
	wantLines(t, lines[len(lines)-4:len(lines)-2], `
device 0 62.3% busy  all-reduce 1.23ms of 9.81ms per step  memory 3.0 GiB of 40.0 GiB
`+`copied 20.0 GiB up, 5.0 GiB down, 7.0 GiB between devices
`)
	v.Devices = devices(1)
	lines = block(v, 0, 120)
	wantLines(t, lines[len(lines)-1:], `
device 0 62.3% busy  9.81ms per step  memory 3.0 GiB of 40.0 GiB  copied 20.0 GiB up, 5.0 GiB down
`)
	if line := plainLine(v, 0); !strings.Contains(line, "  device 62.3% busy  ") {
		t.Error(line)
	}
	v.Devices = devices(2)
	if line := plainLine(v, 0); !strings.Contains(line, "  devices 62.3%, - busy  ") {
		t.Error(line)
	}
	var out bytes.Buffer
	terminal.New(&out, true).Logger(0).Info("progress", frame(v, 10).Attrs()...)
	wantJSONLines(t, out.String())
	if !strings.Contains(out.String(), `"busy_fraction":0.6234,"all_reduce_seconds":0.001234},{"device":3,`) {
		t.Error(out.String())
	}
}

// TestDeviceTable: the table of devices stands below that of the stages.
func TestDeviceTable(t *testing.T) {
	var out bytes.Buffer
	if err := PrintSummary(&out, &report.Summary{Devices: devices(2), Bound: "something"}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(out.String(), "limited by \n\n")
	text, _, _ = strings.Cut(text, "bounded by")
	wantLines(t, strings.Split(strings.TrimRight(text, "\n"), "\n"), `
devices; times are means over 12 measured steps
  device   busy  time/step  all-reduce   memory  copied up     down  between
       0  62.3%     9.81ms      1.23ms  3.0 GiB   20.0 GiB  5.0 GiB  7.0 GiB
       3      -          -           -  2.0 GiB   19.0 GiB  4.0 GiB  7.0 GiB
`)

	with := devices(2)
	with[0].RowsUploaded, with[0].RowsKept, with[0].RowsLate, with[1].RowsUploaded = 300, 100, 30, 4
	out.Reset()
	if err := PrintSummary(&out, &report.Summary{Devices: with, Bound: "something"}); err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(out.String(), "measured steps\n")
	text, _, _ = strings.Cut(text, "bounded by")
	wantLines(t, strings.Split(strings.TrimRight(text, "\n"), "\n"), `
  device   busy  time/step  all-reduce   memory  copied up     down  between  rows kept   late
       0  62.3%     9.81ms      1.23ms  3.0 GiB   20.0 GiB  5.0 GiB  7.0 GiB      25.0%  10.0%
       3      -          -           -  2.0 GiB   19.0 GiB  4.0 GiB  7.0 GiB       0.0%   0.0%
`)
}
