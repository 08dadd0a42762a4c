package main

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer"
)

func trainingView() *trainer.View {
	return &trainer.View{
		Phase: trainer.PhaseTraining, Epoch: 1, Epochs: 3, Step: 2411, Examples: 1234567, Loss: 0.451234, AUC: 0.78126,
		BadRows: 17, BytesRead: 300 << 20, BytesTotal: 1200 << 20, PhaseElapsed: 20 * time.Second,
		Stages: []pipeline.StageStats{
			{Name: "RE", Busy: 5 * time.Second, Blocked: 15 * time.Second},
			{Name: "ST", Busy: time.Second, Starved: 9 * time.Second, Blocked: 10 * time.Second, QueueLen: 2, QueueCap: 2},
			{Name: "EL+JL", Busy: 19 * time.Second, Starved: time.Second, QueueLen: 1, QueueCap: 2},
		},
		Table: sparsetable.Stats{Rows: 4000, MemoryBytes: 3 << 19},
	}
}

func wantLines(t *testing.T, have []string, want string) {
	t.Helper()
	if got := strings.Join(have, "\n"); got != strings.Trim(want, "\n") {
		t.Errorf("have\n%s\nwant%s", got, want)
	}
}

func TestBlock(t *testing.T) {
	wantLines(t, block(trainingView(), 61728.4, 120), `
training, epoch 1 of 3  [#######-----------------------]  25.0%  300.0 MiB of 1.2 GiB  ETA 1m0s, all epochs 3m40s
1234567 examples  61728 examples/s  step 2411  loss 0.45123  AUC 0.7813  17 bad rows
  RE     [########======================]  25% busy
  ST     [##===============.............]   5% busy  queue 2/2
* EL+JL  [#############################.]  95% busy  queue 1/2
  # busy  = blocked  . starved  * limits the job  table 4000 rows, 1.5 MiB
`)
	wantLines(t, block(trainingView(), 61728.4, 56), `
training, epoch 1 of 3
[##--------]  25.0%  300.0 MiB of 1.2 GiB  ETA 1m0s, all epochs 3m40s
1234567 examples  61728 examples/s  step 2411
loss 0.45123  AUC 0.7813  17 bad rows
  RE     [####============]  25% busy
  ST     [#========.......]   5% busy  queue 2/2
* EL+JL  [###############.]  95% busy  queue 1/2
  # busy  = blocked  . starved  * limits the job
table 4000 rows, 1.5 MiB
`)
}

func TestBlockOfOtherPhases(t *testing.T) {
	wantLines(t, block(&trainer.View{Phase: trainer.PhaseSaving, PhaseElapsed: 75 * time.Second}, 0, 80), "\nsaving  1m15s\n")
	wantLines(t, block(&trainer.View{
		Phase: trainer.PhaseEvaluating, Epoch: 1, Epochs: 1, Examples: 10, BytesRead: 10, BytesTotal: 20, PhaseElapsed: time.Millisecond,
		Stages: []pipeline.StageStats{{Name: "RE"}},
	}, 5, 80), `
evaluating  [###############---------------]  50.0%  10 B of 20 B  ETA -
10 examples  5 examples/s
  RE     [                              ]   -% busy
  # busy  = blocked  . starved  * limits the job  table 0 rows, 0 B
`)
}

func TestPlainLine(t *testing.T) {
	wantLines(t, []string{plainLine(trainingView(), 61728.4)}, `
training, epoch 1 of 3  25.0% (300.0 MiB of 1.2 GiB)  ETA 1m0s, all epochs 3m40s  1234567 examples  61728 examples/s  loss 0.45123  AUC 0.7813  17 bad rows  limited by EL+JL
`)
	wantLines(t, []string{plainLine(&trainer.View{Phase: trainer.PhaseScanning, PhaseElapsed: 12 * time.Second}, 0)}, "\nscanning  12s\n")
}

func TestShareOfALimitedPhase(t *testing.T) {
	v := trainingView()
	v.MaxExamples = 2 * v.Examples
	if s := share(v); s != 0.5 {
		t.Errorf("half of the examples that the phase is limited to is a share of %v", s)
	}
	if d := eta(v); d != 20*time.Second {
		t.Errorf("ETA %v, want 20s", d)
	}
	v.MaxExamples = 100 * v.Examples // more than there are
	if s := share(v); s != 0.25 {
		t.Errorf("a limit beyond the data changes the share to %v", s)
	}
}

// TestProgressInJSON: undefined figures are left out; JSON has no NaN.
func TestProgressInJSON(t *testing.T) {
	for _, v := range []*trainer.View{
		trainingView(),
		{Phase: trainer.PhaseSaving},
		{Phase: trainer.PhaseTraining, Epoch: 1, Epochs: 1, Loss: math.Inf(1), AUC: math.NaN(), BytesTotal: 10, Examples: 5},
	} {
		var out bytes.Buffer
		c := newConsole(&out, true)
		d := &display{console: c, log: c.logger(0)}
		d.show(v, 10)
		wantJSONLines(t, out.String())
		if s := out.String(); strings.Count(s, "\n") != 1 || strings.Contains(s, "ERROR") || !strings.Contains(s, `"phase":"`+string(v.Phase)+`"`) {
			t.Errorf("progress in JSON: %s", s)
		}
	}
}

func TestPlainProgressIsLogOfLevelInfo(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		lines int
	}{{slog.LevelInfo, 1}, {slog.LevelDebug, 1}, {slog.LevelWarn, 0}} {
		var out bytes.Buffer
		con := newConsole(&out, false)
		d := &display{console: con, log: con.logger(c.level)}
		d.show(trainingView(), 1)
		if n := strings.Count(out.String(), "\n"); n != c.lines {
			t.Errorf("level %v: %d lines of progress, want %d", c.level, n, c.lines)
		}
	}
}

func TestDisplayEndsCleanly(t *testing.T) {
	s := &screen{columns: 80}
	c := onScreen(s, 24)
	d := &display{console: c, status: new(trainer.Status), log: c.logger(0), ended: make(chan struct{}), done: make(chan struct{})}
	go d.run(time.Millisecond)
	d.show(trainingView(), 1)
	d.stop()
	d.stop()
	if s.text() != "" {
		t.Errorf("the display leaves %q", s.text())
	}
}

func TestRateMeter(t *testing.T) {
	var m rateMeter
	at := time.Unix(0, 0)
	v := &trainer.View{Phase: trainer.PhaseTraining, Epoch: 1, Examples: 100, PhaseElapsed: time.Second}
	m.update(v, at)
	if m.rate != 100 {
		t.Errorf("first look: %v examples/s, want 100", m.rate)
	}
	for range 100 { // a steady pace is met, whatever was before
		at = at.Add(time.Second)
		v.Examples += 500
		m.update(v, at)
	}
	if math.Abs(m.rate-500) > 1 {
		t.Errorf("steady 500 examples/s are shown as %v", m.rate)
	}
	m.update(&trainer.View{Phase: trainer.PhaseEvaluating, Epoch: 1}, at)
	if m.rate != 0 {
		t.Errorf("a new phase starts with %v", m.rate)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", math.MaxInt64: "8192.0 PiB"} {
		if have := bytesText(n); have != want {
			t.Errorf("%d: %s, want %s", n, have, want)
		}
	}
}
