package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer"
)

// rateMeter smooths examples per second over the last looks.
type rateMeter struct {
	phase    trainer.Phase
	epoch    int
	examples int64
	at       time.Time
	rate     float64 // examples per second
}

// rateConstant is the time constant of the smoothing: passes come in bursts,
// and a figure that jumps cannot be read.
const rateConstant = 3 * time.Second

func (m *rateMeter) update(v *trainer.View, now time.Time) {
	if v.Phase != m.phase || v.Epoch != m.epoch || v.Examples < m.examples {
		*m = rateMeter{phase: v.Phase, epoch: v.Epoch, examples: v.Examples, at: now}
		if s := v.PhaseElapsed.Seconds(); s > 0 {
			m.rate = float64(v.Examples) / s
		}
		return
	}
	dt := now.Sub(m.at)
	if dt <= 0 {
		return
	}
	present := float64(v.Examples-m.examples) / dt.Seconds()
	w := 1 - math.Exp(-float64(dt)/float64(rateConstant))
	if m.rate == 0 {
		w = 1
	}
	m.rate += w * (present - m.rate)
	m.examples, m.at = v.Examples, now
}

// share is how much of the phase is done, or -1 when unknown: of its bytes, or
// of the examples that it is limited to if those come to an end first.
func share(v *trainer.View) float64 {
	if v.BytesTotal <= 0 {
		return -1
	}
	done := float64(v.BytesRead) / float64(v.BytesTotal)
	if v.MaxExamples > 0 {
		done = max(done, float64(v.Examples)/float64(v.MaxExamples))
	}
	return min(1, done)
}

// eta is the time left in the phase at the pace so far; negative when unknown.
func eta(v *trainer.View) time.Duration {
	s := share(v)
	if s <= 0 || v.PhaseElapsed < time.Second {
		return -1
	}
	return time.Duration(float64(v.PhaseElapsed) * (1 - s) / s)
}

// etaAll is the time left in training when all epochs take as long as this
// one, without evaluations; negative when unknown or the same as eta.
func etaAll(v *trainer.View) time.Duration {
	left := eta(v)
	if left < 0 || v.Phase != trainer.PhaseTraining || v.Epoch >= v.Epochs {
		return -1
	}
	epoch := float64(v.PhaseElapsed) / share(v)
	return left + time.Duration(epoch*float64(v.Epochs-v.Epoch))
}

func heading(v *trainer.View) string {
	if v.Epoch > 0 && v.Epochs > 1 {
		return fmt.Sprintf("%s, epoch %d of %d", v.Phase, v.Epoch, v.Epochs)
	}
	return string(v.Phase)
}

func etaText(v *trainer.View) string {
	left, all := eta(v), etaAll(v)
	switch {
	case left < 0:
		return "ETA -"
	case all >= 0:
		return fmt.Sprintf("ETA %s, all epochs %s", seconds(left), seconds(all))
	}
	return "ETA " + seconds(left)
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// metric is a figure by its name; zero is that of a job too young to have one.
func metric(name string, x float64, digits int) string {
	if math.IsNaN(x) || x == 0 {
		return name + " -"
	}
	return fmt.Sprintf("%s %.*f", name, digits, x)
}

// plainLine is one line of progress where there is no terminal.
func plainLine(v *trainer.View, rate float64) string {
	parts := []string{heading(v)}
	if s := share(v); s >= 0 {
		parts = append(parts, fmt.Sprintf("%.1f%% (%s of %s)", 100*s, bytesText(v.BytesRead), bytesText(v.BytesTotal)), etaText(v))
	} else {
		parts = append(parts, seconds(v.PhaseElapsed))
	}
	if v.Examples > 0 {
		parts = append(parts, fmt.Sprintf("%d examples", v.Examples), fmt.Sprintf("%.0f examples/s", rate))
	}
	if v.Phase == trainer.PhaseTraining {
		parts = append(parts, metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
	}
	if v.BadRows > 0 {
		parts = append(parts, fmt.Sprintf("%d bad rows", v.BadRows))
	}
	if len(v.Stages) > 0 {
		if name := pipeline.Limiting(v.Stages); name != "" {
			parts = append(parts, "limited by "+name)
		}
		if v.Table.Kind == sparsetable.KindSSD {
			parts = append(parts, hitsText(&v.Table), readsText(&v.Table), diskText(&v.Table))
		}
	}
	return strings.Join(parts, "  ")
}

// progressAttrs is the same for a log in JSON: keys and values of what is known.
func progressAttrs(v *trainer.View, rate float64) []any {
	attrs := []any{"phase", string(v.Phase), "seconds", v.PhaseElapsed.Seconds()}
	add := func(known bool, key string, value any) {
		if known {
			attrs = append(attrs, key, value)
		}
	}
	defined := func(x float64) bool { return x != 0 && !math.IsNaN(x) && !math.IsInf(x, 0) }
	training := v.Phase == trainer.PhaseTraining
	add(v.Epoch > 0, "epoch", v.Epoch)
	add(v.Epoch > 0, "epochs", v.Epochs)
	add(v.BytesTotal > 0, "bytes", v.BytesRead)
	add(v.BytesTotal > 0, "bytes_total", v.BytesTotal)
	add(v.Examples > 0, "examples", v.Examples)
	add(v.Examples > 0, "examples_per_second", math.Round(rate))
	add(eta(v) >= 0, "eta_seconds", math.Round(eta(v).Seconds()))
	add(training, "step", v.Step)
	add(training && defined(v.Loss), "log_loss", v.Loss)
	add(training && defined(v.AUC), "auc", v.AUC)
	add(v.BadRows > 0, "bad_rows", v.BadRows)
	if len(v.Stages) > 0 {
		name := pipeline.Limiting(v.Stages)
		add(name != "", "limiting_stage", name)
		attrs = append(attrs, v.Table.Attrs()...)
	}
	return attrs
}

// Widths of bars, in columns; beside a stage's bar stand 40 more.
const (
	maxBar         = 30
	minBar         = 10
	besideStageBar = 40
)

// block is the display on a terminal of so many columns: a progress bar,
// figures, and a bar of busy, blocked and starved time per stage.
func block(v *trainer.View, rate float64, columns int) []string {
	var parts []string
	if s := share(v); s >= 0 {
		text := fmt.Sprintf("%5.1f%%  %s of %s  %s", 100*s, bytesText(v.BytesRead), bytesText(v.BytesTotal), etaText(v))
		width := clamp(columns - 1 - len(heading(v)) - len("  [] ") - len(text))
		parts = []string{heading(v), bar(s, width) + " " + text}
	} else {
		parts = []string{heading(v), seconds(v.PhaseElapsed)}
	}
	b := flow(parts, columns)
	if v.Examples > 0 {
		parts = []string{fmt.Sprintf("%d examples", v.Examples), fmt.Sprintf("%.0f examples/s", rate)}
		if v.Phase == trainer.PhaseTraining {
			parts = append(parts, fmt.Sprintf("step %d", v.Step), metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
		}
		if v.BadRows > 0 {
			parts = append(parts, fmt.Sprintf("%d bad rows", v.BadRows))
		}
		b = append(b, flow(parts, columns)...)
	}
	if len(v.Stages) == 0 {
		return b
	}
	limiting := pipeline.Limiting(v.Stages)
	for _, s := range v.Stages {
		mark := " "
		if s.Name == limiting {
			mark = "*"
		}
		line := fmt.Sprintf("%s %-6s %s", mark, s.Name, stageBar(s, clamp(columns-besideStageBar)))
		if s.QueueCap > 0 {
			line += fmt.Sprintf("  queue %d/%d", s.QueueLen, s.QueueCap)
		}
		b = append(b, line)
	}
	legend := []string{"  # busy", "= blocked", ". starved", "* limits the job"}
	lines := tableLines(&v.Table)
	if len(lines) == 1 {
		legend, lines = append(legend, lines[0]...), nil
	}
	b = append(b, flow(legend, columns)...)
	for _, parts := range lines {
		b = append(b, flow(parts, columns)...)
	}
	return b
}

// flow joins parts to lines that fit the columns of a terminal, but for a part
// that is too long by itself.
func flow(parts []string, columns int) []string {
	var out []string
	for i, p := range parts {
		if n := len(out); i > 0 && len(out[n-1])+2+len(p) < columns {
			out[n-1] += "  " + p
		} else {
			out = append(out, p)
		}
	}
	return out
}

func clamp(width int) int { return min(maxBar, max(minBar, width)) }

func bar(share float64, width int) string {
	full := int(share * float64(width))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}

func stageBar(s pipeline.StageStats, width int) string {
	total := s.Busy + s.Starved + s.Blocked
	if total <= 0 {
		return fmt.Sprintf("[%s]   -%% busy", strings.Repeat(" ", width))
	}
	cells := func(d time.Duration) int { return int(math.Round(float64(width) * float64(d) / float64(total))) }
	busy := cells(s.Busy)
	blocked := min(cells(s.Blocked), width-busy)
	return fmt.Sprintf("[%s%s%s] %3.0f%% busy", strings.Repeat("#", busy), strings.Repeat("=", blocked),
		strings.Repeat(".", width-busy-blocked), 100*float64(s.Busy)/float64(total))
}

// bytesText is n in a unit that people read.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}
