// Package jobview shows jobs to users. While a job runs it shows the progress, on a
// terminal, as lines of text or as attributes of JSON records; at the end it prints the
// job's report.
package jobview

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"aibox/internal/humanize"
	"aibox/internal/terminal"
	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer/report"
)

// Watch shows the progress of a job on the console.
func Watch(c *terminal.Console, status *report.Status, log *slog.Logger) *terminal.Display {
	return terminal.Watch(c, frames(status), log)
}

// frames returns a function that returns frames of a job's progress.
func frames(status *report.Status) func(now time.Time) terminal.Frame {
	var rate rateMeter
	return func(now time.Time) terminal.Frame {
		v := status.View()
		if v.Phase == "" {
			return terminal.Frame{}
		}
		return frame(&v, rate.update(&v, now))
	}
}

func frame(v *report.View, rate float64) terminal.Frame {
	return terminal.Frame{
		Block: func(columns int) []string { return block(v, rate, columns) },
		Line:  func() string { return plainLine(v, rate) },
		Attrs: func() []any { return progressAttrs(v, rate) },
	}
}

// share returns the completed share of the phase, or -1 if it is not known: the share of the bytes,
// or of the limit on examples if the limit will end the phase first.
func share(v *report.View) float64 { return shareOf(v, v.BytesRead, v.Examples) }

func shareOf(v *report.View, bytes, examples int64) float64 {
	if v.BytesTotal <= 0 {
		return -1
	}
	done := float64(bytes) / float64(v.BytesTotal)
	if v.MaxExamples > 0 {
		done = max(done, float64(examples)/float64(v.MaxExamples))
	}
	return min(1, done)
}

// whole is how long all of the phase takes at the rate of this process so far. It is negative if
// that is not known.
func whole(v *report.View) time.Duration {
	made := share(v) - shareOf(v, v.BytesBefore, v.ExamplesBefore)
	if made <= 0 || v.PhaseElapsed < time.Second {
		return -1
	}
	return time.Duration(float64(v.PhaseElapsed) / made)
}

// eta returns the time that is left in the phase at the rate so far. It is negative if
// that is not known.
func eta(v *report.View) time.Duration {
	all := whole(v)
	if all < 0 {
		return -1
	}
	return time.Duration(float64(all) * (1 - share(v)))
}

// etaAll is the time left in training when all epochs take as long as this
// one, without evaluations; negative when unknown or the same as eta.
func etaAll(v *report.View) time.Duration {
	left := eta(v)
	if left < 0 || v.Phase != report.PhaseTraining || v.Epoch >= v.Epochs {
		return -1
	}
	return left + time.Duration(v.Epochs-v.Epoch)*whole(v)
}

func heading(v *report.View) string {
	if v.Epoch > 0 && v.Epochs > 1 {
		return fmt.Sprintf("%s, epoch %d of %d", v.Phase, v.Epoch, v.Epochs)
	}
	return string(v.Phase)
}

func etaText(v *report.View) string {
	left, all := eta(v), etaAll(v)
	switch {
	case left < 0:
		return "ETA -"
	case all >= 0:
		return fmt.Sprintf("ETA %s, all epochs %s", humanize.Seconds(left), humanize.Seconds(all))
	}
	return "ETA " + humanize.Seconds(left)
}

// metric formats a named figure. Zero means that the job has only just started and has none yet.
func metric(name string, x float64, digits int) string {
	if math.IsNaN(x) || x == 0 {
		return name + " -"
	}
	return fmt.Sprintf("%s %.*f", name, digits, x)
}

// plainLine is one line of progress where there is no terminal.
func plainLine(v *report.View, rate float64) string {
	parts := []string{heading(v)}
	if s := share(v); s >= 0 {
		parts = append(parts, fmt.Sprintf("%.1f%% (%s of %s)", 100*s, humanize.Bytes(v.BytesRead), humanize.Bytes(v.BytesTotal)), etaText(v))
	} else {
		parts = append(parts, humanize.Seconds(v.PhaseElapsed))
	}
	if v.Examples > 0 {
		parts = append(parts, fmt.Sprintf("%d examples", v.Examples), fmt.Sprintf("%.0f examples/s", rate))
	}
	if v.Phase == report.PhaseTraining {
		parts = append(parts, metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
	}
	parts = append(parts, troubles(v)...)
	if len(v.Stages) > 0 {
		if name := pipeline.Limiting(v.Stages); name != "" {
			parts = append(parts, "limited by "+name)
		}
		if v.Table.Kind == sparsetable.KindSSD {
			parts = append(parts, hitsText(&v.Table), readsText(&v.Table), diskText(&v.Table))
		}
		if len(v.Devices) > 0 {
			parts = append(parts, busyDevices(v.Devices))
		}
		if v.ResidentBytes > 0 {
			parts = append(parts, "memory "+humanize.Bytes(v.ResidentBytes))
		}
	}
	return strings.Join(parts, "  ")
}

// troubles lists what is wrong with the job, or not yet in order.
func troubles(v *report.View) (parts []string) {
	if v.BadRows > 0 {
		parts = append(parts, fmt.Sprintf("%d bad rows", v.BadRows))
	}
	if uploadsFail(v) {
		parts = append(parts, "uploading snapshots fails")
	}
	if v.LostSamples > 0 { // by partial recovery
		parts = append(parts, fmt.Sprintf("%.2g %% of samples lost", 100*v.LostSamples))
	}
	if text := arrivalText(v); text != "" {
		parts = append(parts, text)
	}
	return parts
}

// uploadsFail reports whether the last attempt to upload a snapshot has failed.
func uploadsFail(v *report.View) bool { return v.Uploads != nil && v.Uploads.Error != "" }

// arrivalText says how much has arrived of a table that is fetched during training; "" if all of it
// has.
func arrivalText(v *report.View) string {
	if r := v.Arriving; r != nil && r.WholeSeconds == 0 {
		return fmt.Sprintf("fetched %s of %s of the table", humanize.Bytes(r.ArrivedBytes), humanize.Bytes(r.TotalBytes))
	}
	return ""
}

// progressAttrs returns the same as keys and values for a JSON log, as far as they are known.
func progressAttrs(v *report.View, rate float64) []any {
	attrs := []any{"phase", string(v.Phase), "seconds", v.PhaseElapsed.Seconds()}
	add := func(known bool, key string, value any) {
		if known {
			attrs = append(attrs, key, value)
		}
	}
	defined := func(x float64) bool { return x != 0 && !math.IsNaN(x) && !math.IsInf(x, 0) }
	training := v.Phase == report.PhaseTraining
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
	add(v.LostSamples > 0, "lost_samples", v.LostSamples)
	add(uploadsFail(v), "uploading_snapshots", "fails")
	if arrivalText(v) != "" {
		attrs = append(attrs, "table_bytes_arrived", v.Arriving.ArrivedBytes, "table_bytes_arriving", v.Arriving.TotalBytes)
	}
	if len(v.Stages) > 0 {
		name := pipeline.Limiting(v.Stages)
		add(name != "", "limiting_stage", name)
		attrs = append(attrs, v.Table.Attrs()...)
		add(len(v.Devices) > 0, "devices", v.Devices)
		add(v.ResidentBytes > 0, "process_bytes", v.ResidentBytes)
	}
	return attrs
}

// besideStageBar is the number of columns that a stage's line needs beside its bar.
const besideStageBar = 40

// block returns the display for a terminal of this many columns: a progress bar, figures, for each
// stage a bar of its busy, blocked and starved time, and lines about the table and the devices.
func block(v *report.View, rate float64, columns int) []string {
	var parts []string
	if s := share(v); s >= 0 {
		text := fmt.Sprintf("%5.1f%%  %s of %s  %s", 100*s, humanize.Bytes(v.BytesRead), humanize.Bytes(v.BytesTotal), etaText(v))
		width := terminal.BarWidth(columns - 1 - len(heading(v)) - len("  [] ") - len(text))
		parts = []string{heading(v), terminal.Bar(s, width) + " " + text}
	} else {
		parts = []string{heading(v), humanize.Seconds(v.PhaseElapsed)}
	}
	b := terminal.Flow(parts, columns)
	if v.Examples > 0 {
		parts = []string{fmt.Sprintf("%d examples", v.Examples), fmt.Sprintf("%.0f examples/s", rate)}
		if v.Phase == report.PhaseTraining {
			parts = append(parts, fmt.Sprintf("step %d", v.Step), metric("loss", v.Loss, 5), metric("AUC", v.AUC, 4))
		}
		parts = append(parts, troubles(v)...)
		b = append(b, terminal.Flow(parts, columns)...)
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
		line := fmt.Sprintf("%s %-6s %s", mark, s.Name, stageBar(s, terminal.BarWidth(columns-besideStageBar)))
		if s.QueueCap > 0 {
			line += fmt.Sprintf("  queue %d/%d", s.QueueLen, s.QueueCap)
		}
		b = append(b, line)
	}
	legend := []string{"  # busy", "= blocked", ". starved", "* limits the job"}
	lines := tableLines(&v.Table, v.ResidentBytes)
	if len(lines) == 1 {
		legend, lines = append(legend, lines[0]...), nil
	}
	b = append(b, terminal.Flow(legend, columns)...)
	for _, parts := range append(lines, usageLines(v.Devices)...) {
		b = append(b, terminal.Flow(parts, columns)...)
	}
	return b
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
