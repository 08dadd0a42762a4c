package pipeline

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClocks runs a line whose middle stage is the slowest: the source ends up
// blocked, the sink starved. Under synctest the times are exact.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		src := Source(p, "RE", func(_ context.Context, emit func(int) error) error {
			for i := range 10 {
				time.Sleep(10 * time.Millisecond)
				if err := emit(i); err != nil {
					return err
				}
			}
			return nil
		})
		m := mapOne(p, "ST", src, 2, func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Duration(20+20*(i%2)) * time.Millisecond) // 20, 40, 20, …
			return i, nil
		})
		sink(p, "EL+JL", m, 2, func(context.Context, int) error { time.Sleep(5 * time.Millisecond); return nil })
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the clocks have stopped
		st := p.Stats()
		const ms = time.Millisecond
		// The map starts at 10, works 10 items in 300; the sink ends 5 later.
		re, table, sink := st[0], st[1], st[2]
		if re.Busy != 100*ms || re.Starved != 0 || re.Items != 10 {
			t.Errorf("source: %+v", re)
		}
		if table.Busy != 300*ms || table.Starved != 10*ms || table.Blocked != 0 || table.Elapsed != 310*ms {
			t.Errorf("map: %+v", table)
		}
		if sink.Busy != 50*ms || sink.Starved != 265*ms || sink.Elapsed != 315*ms {
			t.Errorf("sink: %+v", sink)
		}
		for _, s := range st {
			if s.Busy+s.Starved+s.Blocked != s.Elapsed {
				t.Errorf("%s: states do not add up: %+v", s.Name, s)
			}
			if s.State != Idle {
				t.Errorf("%s: state %v after the end", s.Name, s.State)
			}
		}
		// Emissions at 10 … and then one per item that the map takes.
		if re.Blocked == 0 || re.Elapsed != re.Busy+re.Blocked {
			t.Errorf("source never blocked: %+v", re)
		}
		if table.ItemMin != 20*ms || table.ItemMax != 40*ms || near(table.ItemMean, 30*ms) || near(table.ItemStddev, 10*ms) {
			t.Errorf("map's items: %+v", table)
		}
		if table.QueueCap != 2 || table.QueueMean < 1 || table.QueueMean > 2 || sink.QueueMean != 0 {
			t.Errorf("queues: %v of %d and %v", table.QueueMean, table.QueueCap, sink.QueueMean)
		}
		if got := Limiting(st); got != "ST" {
			t.Errorf("limiting stage %q", got)
		}
	})
}

// near reports whether a and b differ by more than float rounding.
func near(a, b time.Duration) bool { return math.Abs(float64(a-b)) > 10 }

func TestStatsWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		for _, s := range p.Stats() {
			t.Errorf("stage %v before any was added", s)
		}
		src := Source(p, "source", count(5))
		sink(p, "sink", src, 2, func(context.Context, int) error { time.Sleep(time.Second); return nil })
		if st := p.Stats(); st[1].Elapsed != 0 || st[1].QueueCap != 2 {
			t.Errorf("before Run: %+v", st)
		}
		done := make(chan error)
		go func() { done <- p.Run() }()
		time.Sleep(1500 * time.Millisecond)
		st := p.Stats()
		if st[0].State != Blocked || st[0].Blocked != 1500*time.Millisecond {
			t.Errorf("source: %+v", st[0])
		}
		if st[1].State != Busy || st[1].Items != 1 || st[1].Busy != 1500*time.Millisecond || st[1].QueueLen != 2 || st[1].QueueMean != 2 {
			t.Errorf("sink: %+v", st[1])
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTable(t *testing.T) {
	got := Table([]StageStats{
		{Name: "RE", Items: 12, Elapsed: 10 * time.Second, Busy: 5 * time.Second, Blocked: 5 * time.Second, ItemMean: 250 * time.Millisecond, ItemStddev: 12345678},
		{Name: "EL+JL", Items: 12, Elapsed: 10 * time.Second, Busy: 9 * time.Second, Starved: time.Second, ItemMean: 750 * time.Millisecond, QueueCap: 4, QueueMean: 3.25},
	})
	want := strings.TrimPrefix(`
  stage  items  time/item   stddev  share   busy  starved  blocked  queue
     RE     12      250ms  12.35ms  25.0%  50.0%     0.0%    50.0%      -
  EL+JL     12      750ms       0s  75.0%  90.0%    10.0%     0.0%  3.2/4
`, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if Limiting(nil) != "" {
		t.Error("an empty line has a limiting stage")
	}
	if got := Table([]StageStats{{Name: "RE"}}); !strings.Contains(got, "-") {
		t.Errorf("table of an idle stage:\n%s", got)
	}
}
