package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"aibox/pipeline"
	"aibox/trainer"
)

// rateMeter smooths examples per second over the last looks.
type rateMeter struct {
	phase    trainer.Phase
	epoch    int
	examples int64
	at       time.Time
	rate     float64
}

func (m *rateMeter) update(v *trainer.View) {
	now := time.Now()
	if v.Phase != m.phase || v.Epoch != m.epoch || v.Examples < m.examples {
		*m = rateMeter{phase: v.Phase, epoch: v.Epoch, examples: v.Examples, at: now}
		return
	}
	dt := now.Sub(m.at).Seconds()
	if dt <= 0 {
		return
	}
	present := float64(v.Examples-m.examples) / dt
	// Time constant of about three seconds.
	w := 1 - math.Exp(-dt/3)
	if m.rate == 0 {
		w = 1
	}
	m.rate += w * (present - m.rate)
	m.examples, m.at = v.Examples, now
}

func (m *rateMeter) perSecond() float64 { return m.rate }

// share is how much of the phase's bytes are done, or -1 when unknown.
func share(v *trainer.View) float64 {
	if v.BytesTotal <= 0 {
		return -1
	}
	return min(1, float64(v.BytesRead)/float64(v.BytesTotal))
}

// eta is the time left in the phase at the pace so far; negative when unknown.
func eta(v *trainer.View) time.Duration {
	s := share(v)
	if s <= 0 || v.PhaseElapsed < time.Second {
		return -1
	}
	return time.Duration(float64(v.PhaseElapsed) * (1 - s) / s)
}

func heading(v *trainer.View) string {
	if v.Epoch > 0 && v.Epochs > 1 {
		return fmt.Sprintf("%s epoch %d/%d", v.Phase, v.Epoch, v.Epochs)
	}
	return string(v.Phase)
}

func etaText(v *trainer.View) string {
	if d := eta(v); d >= 0 {
		return "ETA " + d.Round(time.Second).String()
	}
	return "ETA -"
}

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
		parts = append(parts, fmt.Sprintf("%.1f%% (%s of %s)", 100*s, bytesText(v.BytesRead), bytesText(v.BytesTotal)))
	}
	if v.Examples > 0 {
		parts = append(parts, fmt.Sprintf("%d examples", v.Examples), fmt.Sprintf("%.0f examples/s", rate), etaText(v))
	}
	if v.Phase == trainer.PhaseTraining {
		parts = append(parts, metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
	}
	if v.BadRows > 0 {
		parts = append(parts, fmt.Sprintf("%d bad rows", v.BadRows))
	}
	return strings.Join(parts, "  ")
}

// block is the display on a terminal: a progress bar, figures, and a bar of
// busy, starved and blocked time per stage. Every line ends in a newline and
// fits width columns.
func block(v *trainer.View, rate float64, width int) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		s := fmt.Sprintf(format, args...)
		if utf8.RuneCountInString(s) >= width {
			s = string([]rune(s)[:width-1])
		}
		b.WriteString(s)
		b.WriteByte('\n')
	}
	if s := share(v); s >= 0 {
		line("%-20s %s %5.1f%%  %s of %s  %s", heading(v), bar(s, min(30, max(10, width-65))), 100*s,
			bytesText(v.BytesRead), bytesText(v.BytesTotal), etaText(v))
	} else {
		line("%-20s %s", heading(v), v.PhaseElapsed.Round(time.Second))
	}
	if v.Examples > 0 {
		text := fmt.Sprintf("%d examples  %.0f examples/s", v.Examples, rate)
		if v.Phase == trainer.PhaseTraining {
			text += fmt.Sprintf("  step %d  %s  %s", v.Step, metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
		}
		if v.BadRows > 0 {
			text += fmt.Sprintf("  %d bad rows", v.BadRows)
		}
		line("%s", text)
	}
	if len(v.Stages) > 0 {
		limiting := pipeline.Limiting(v.Stages)
		for _, s := range v.Stages {
			mark := " "
			if s.Name == limiting {
				mark = "*"
			}
			queue := ""
			if s.QueueCap > 0 {
				queue = fmt.Sprintf("  queue %d/%d", s.QueueLen, s.QueueCap)
			}
			line("%s %-6s %s%s", mark, s.Name, stageBar(s, 30), queue)
		}
		line("  # busy  . starved  = blocked  * limits the job   rows %d  table %s", v.Table.Rows, bytesText(v.Table.MemoryBytes))
	}
	return b.String()
}

func bar(share float64, width int) string {
	full := int(share * float64(width))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}

func stageBar(s pipeline.StageStats, width int) string {
	total := s.Busy + s.Starved + s.Blocked
	if total <= 0 {
		return "[" + strings.Repeat(" ", width) + "]"
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
