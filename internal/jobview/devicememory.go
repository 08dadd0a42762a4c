package jobview

import (
	"fmt"
	"io"
	"strings"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/forecast"
)

// PrintDevices writes how much memory a job takes on each of its devices, and how much is free
// there, each line after prefix. It writes nothing if the CPU computes the network. The error says
// which devices have too little memory, or why that is not known although there are devices.
func PrintDevices(w io.Writer, job *configs.Job, size forecast.DataSize, prefix string) error {
	f, err := forecast.ForDevices(job, size)
	if f == nil {
		return err
	}
	for _, line := range deviceLines(f) {
		if _, err := fmt.Fprintf(w, "%s%s\n", prefix, line); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return f.Fits()
}

// deviceLines returns lines about the device memory that a job takes.
func deviceLines(f *forecast.OnDevices) []string {
	part := ""
	if f.Of > 1 {
		part = fmt.Sprintf(" divided among %d devices", f.Of)
	}
	rows := ""
	if f.Rows {
		rows = ", and the rows of a pass in what is left"
	}
	n := &f.Needs
	var parts []string
	for _, x := range []struct {
		what  string
		bytes int64
	}{
		{"parameters", n.Parameters}, {"gradients", n.Gradients}, {"optimizer", n.Optimizer}, {"averages", n.Averages},
		{"activations", n.Arena}, {"inputs", n.Inputs}, {"matrix products", n.Products},
	} {
		if x.bytes > 0 {
			parts = append(parts, x.what+" "+humanize.Bytes(x.bytes))
		}
	}
	lines := []string{
		fmt.Sprintf("Memory of each device, for mini-batches of %s%s (a forecast): %s%s", humanize.Count(int64(f.Examples), "example"), part, humanize.Bytes(n.Device()), rows),
		"  " + strings.Join(parts, ", ") + "; pinned memory of the host " + humanize.Bytes(n.Pinned),
	}
	if f.Absent != nil {
		lines = append(lines, fmt.Sprintf("This lacks the memory for matrix products and is not compared with a device, because none is available: %v", f.Absent))
	}
	for _, d := range f.Devices {
		times := ""
		if d.Times > 1 {
			times = fmt.Sprintf(" engine.devices lists it %d times.", d.Times)
		}
		lines = append(lines, fmt.Sprintf("Device %d, %s, has %s of its %s free.%s", d.Number, d.Name, humanize.Bytes(d.Free), humanize.Bytes(d.Total), times))
	}
	return lines
}
