package jobview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"aibox/internal/humanize"
	"aibox/trainer/report"
)

// usageLines returns the lines of the display about devices, each in parts. Bytes count from when
// the run started or resumed; times are means over the steps measured so far.
func usageLines(devices []report.Device) [][]string {
	var lines [][]string
	for i := range devices {
		d := &devices[i]
		parts := []string{fmt.Sprintf("device %d %s busy", d.Device, busyText(d))}
		if len(devices) > 1 {
			parts = append(parts, fmt.Sprintf("all-reduce %s of %s per step", timeText(d, d.AllReduce()), timeText(d, d.Step())))
		} else {
			parts = append(parts, timeText(d, d.Step())+" per step")
		}
		copied := fmt.Sprintf("copied %s up, %s down", humanize.Bytes(d.UploadedBytes), humanize.Bytes(d.DownloadedBytes))
		if len(devices) > 1 {
			copied += fmt.Sprintf(", %s between devices", humanize.Bytes(d.BetweenBytes))
		}
		lines = append(lines, append(parts, fmt.Sprintf("memory %s of %s", humanize.Bytes(d.MemoryUsedBytes), humanize.Bytes(d.MemoryBytes)), copied))
	}
	return lines
}

// busyDevices says in a few words how busy devices are.
func busyDevices(devices []report.Device) string {
	var busy []string
	for i := range devices {
		busy = append(busy, busyText(&devices[i]))
	}
	what := "devices"
	if len(busy) == 1 {
		what = "device"
	}
	return fmt.Sprintf("%s %s busy", what, strings.Join(busy, ", "))
}

// deviceTable prints what devices have done, beside the table of the stages.
func deviceTable(w io.Writer, devices []report.Device) error {
	if len(devices) == 0 {
		return nil
	}
	fmt.Fprintf(w, "devices; times are means over %s\n", humanize.Count(devices[0].MeasuredSteps, "measured step"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "device\tbusy\ttime/step\tall-reduce\tmemory\tcopied up\tdown\tbetween\t"
	rows := devices[0].RowsUploaded > 0
	if rows {
		head += "rows kept\tlate\t"
	}
	fmt.Fprintln(t, head)
	for i := range devices {
		d := &devices[i]
		sum, sent := "-", "-"
		if len(devices) > 1 {
			sum, sent = timeText(d, d.AllReduce()), humanize.Bytes(d.BetweenBytes)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", d.Device, busyText(d), timeText(d, d.Step()), sum, humanize.Bytes(d.MemoryUsedBytes),
			humanize.Bytes(d.UploadedBytes), humanize.Bytes(d.DownloadedBytes), sent)
		if rows {
			fmt.Fprintf(t, "%s\t%s\t", shareText(d.RowsKept, d.RowsKept+d.RowsUploaded), shareText(d.RowsLate, d.RowsUploaded))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func shareText(part, of int64) string { return humanize.Percent(float64(part) / float64(max(1, of))) }

func busyText(d *report.Device) string {
	if d.MeasuredSteps == 0 {
		return "-"
	}
	return humanize.Percent(d.BusyFraction)
}

func timeText(d *report.Device, t time.Duration) string {
	if d.MeasuredSteps == 0 {
		return "-"
	}
	return t.Round(10 * time.Microsecond).String()
}
