package terminal

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"aibox/internal/humanize"
)

// Task is a long-running piece of work whose progress the display shows. It consists of one or more
// sequential steps.
type Task struct {
	done  atomic.Int64 // how far the first step has come
	total atomic.Int64 // 0: unknown
	step  atomic.Pointer[taskStep]
}

// taskStep is a step of a task.
type taskStep struct {
	name  string // "exporting"
	unit  string // of done and total: "rows"
	since time.Time
	done  func() int64
}

// StartTask starts the display of a task, which begins with the given step.
func StartTask(c *Console, log *slog.Logger, name, unit string, total int64) (*Task, *Display) {
	t := &Task{}
	t.Next(name, unit, total, t.done.Load)
	return t, Watch(c, t.frame, log)
}

// Next begins another step. done returns how far the step has come; the goroutine of
// the display calls it.
func (t *Task) Next(name, unit string, total int64, done func() int64) {
	t.total.Store(total)
	t.step.Store(&taskStep{name: name, unit: unit, since: time.Now(), done: done})
}

// SetDone says how far the first step has come.
func (t *Task) SetDone(done int64) { t.done.Store(done) }

// SetTotal says how much the step has to do. It is called once that is known.
func (t *Task) SetTotal(total int64) { t.total.Store(total) }

// taskView is the state of a task at one time.
type taskView struct {
	*taskStep
	done, total int64
	elapsed     time.Duration
	rate        float64       // per second
	eta         time.Duration // negative: unknown
}

func (t *Task) view(now time.Time) *taskView {
	v := &taskView{taskStep: t.step.Load(), total: t.total.Load(), eta: -1}
	v.done, v.elapsed = v.taskStep.done(), now.Sub(v.since)
	if s := v.elapsed.Seconds(); s > 0 {
		v.rate = float64(v.done) / s
	}
	if s := v.share(); s > 0 && v.elapsed >= time.Second {
		v.eta = time.Duration(float64(v.elapsed) * (1 - s) / s)
	}
	return v
}

func (t *Task) frame(now time.Time) Frame {
	v := t.view(now)
	return Frame{
		Block: func(columns int) []string { return Flow(v.parts(columns), columns) },
		Line:  v.line,
		Attrs: v.attrs,
	}
}

// share returns the share that is done, or -1 if it is not known.
func (v *taskView) share() float64 {
	if v.total <= 0 {
		return -1
	}
	return min(1, float64(v.done)/float64(v.total))
}

// text says how much is done, how fast it goes, and how long the rest will take.
func (v *taskView) text() []string {
	parts := []string{fmt.Sprintf("%d %s", v.done, v.unit)}
	if v.total > 0 {
		parts[0] = fmt.Sprintf("%5.1f%%  %d of %d %s", 100*v.share(), v.done, v.total, v.unit)
	}
	parts = append(parts, fmt.Sprintf("%.0f %s/s", v.rate, v.unit))
	if v.eta >= 0 {
		parts = append(parts, "ETA "+humanize.Seconds(v.eta))
	}
	return parts
}

func (v *taskView) parts(columns int) []string {
	parts := v.text()
	if s := v.share(); s >= 0 {
		width := BarWidth(columns - 1 - len(v.name) - len("  [] ") - len(parts[0]))
		return append([]string{v.name, Bar(s, width) + " " + parts[0]}, parts[1:]...)
	}
	return append([]string{v.name}, parts...)
}

func (v *taskView) line() string { return v.name + "  " + strings.Join(v.text(), "  ") }

func (v *taskView) attrs() []any {
	attrs := []any{"phase", v.name, "seconds", v.elapsed.Seconds(), v.unit, v.done}
	if v.total > 0 {
		attrs = append(attrs, v.unit+"_total", v.total)
	}
	attrs = append(attrs, v.unit+"_per_second", math.Round(v.rate))
	if v.eta >= 0 {
		attrs = append(attrs, "eta_seconds", math.Round(v.eta.Seconds()))
	}
	return attrs
}
