package kernel

import (
	"testing"
	"time"
)

// fakeBenchmark keeps what is reported to it.
type fakeBenchmark map[string]float64

func (fakeBenchmark) Elapsed() time.Duration                    { return time.Second }
func (b fakeBenchmark) ReportMetric(value float64, unit string) { b[unit] = value }

func TestReportLimits(t *testing.T) {
	b := fakeBenchmark{}
	ReportLimits(b, 1000, Work{Threads: 1, FMAs: 1e6, Bytes: 4 << 10})
	if b["GFLOP/s"] != 2 || b["GB/s"] != 0.004096 {
		t.Errorf("%v, want 2 GFLOP/s and 0.004096 GB/s", b)
	}
	if got, want := b["%peak"], 100*1e9/PeakFMA(1); got < want/10 || got > want*10 {
		t.Errorf("%v %% of the peak, want about %v", got, want)
	}
	if len(b) != 4 || b["%bandwidth"] <= 0 {
		t.Errorf("%v, want four metrics", b)
	}
	b = fakeBenchmark{}
	ReportLimits(b, 1000, Work{Threads: 1, FMAs: 1e6})
	if len(b) != 2 {
		t.Errorf("%v, want the metrics of multiply-adds alone", b)
	}
}
