package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/humanize"
	"aibox/internal/jobview"
	"aibox/trainer/inference"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "describe and verify a model, or the models in a remote directory",
		ArgsUsage: "DIR|URI",
		Description: `Reads and verifies the whole model and describes it. The table is verified as by "aibox
table verify". A table on SSD also has copies of rows that only make the next start
faster. If nothing but these copies is damaged, the model is described along with the
faults, and the exit code is 4. Models with equal digests are equal bit for bit. With
--digest, only the data that the digest covers are read.

For a remote directory (hdfs://, file:// or a path), the models and snapshots are listed
as by "aibox generations", and every file there is read and verified; URI@N restricts
this to one model. Each file that is missing, damaged or unreadable is listed with the
models that need it, and the exit code is 4. Models may be published meanwhile. "aibox
publish --verify" repairs what is reported.

Examples:

  aibox inspect model
  aibox inspect model@3
  aibox inspect --digest model
  aibox inspect hdfs://nameservice/models/ctr`,
		Flags: append(cmdline.HDFSFlags(),
			&cli.BoolFlag{Name: "digest", Usage: "compute the model's digest and print nothing else"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			dir, dated, err := cmdline.ModelArgument(c)
			if err != nil {
				return err
			}
			if uri, number, ok := remoteModels(dir); ok {
				return inspectRemote(c, dated, uri, number)
			}
			in, err := inference.Inspect(c.Context, dir, !c.Bool("digest"), inference.Options{Logger: cmdline.NewLogger(c)})
			if err != nil {
				return err
			}
			switch {
			case c.Bool("digest") && c.Bool("json"):
				err = cmdline.PrintJSON(c.App.Writer, map[string]string{"digest": in.Digest})
			case c.Bool("digest"):
				_, err = fmt.Fprintln(c.App.Writer, in.Digest)
			case c.Bool("json"):
				err = cmdline.PrintJSON(c.App.Writer, in)
			default:
				err = printInspection(c.App.Writer, in)
			}
			if err == nil && len(in.Faults) > 0 {
				return &tablecmd.FaultsError{Dir: dir, Faults: int64(len(in.Faults)), Harmless: true}
			}
			return err
		},
	}
}

func printInspection(w io.Writer, in *inference.Inspection) error {
	m := &in.Manifest
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("model", "%s in %s", in.ModelKind, in.Dir)
	row("digest", "%s", in.Digest)
	row("saved by", "aibox %s, format %d", m.AiboxVersion, m.FormatVersion)
	row("trained", "%d steps; %d examples in the last run; epoch %d kept; %s", m.Step, m.Examples, m.Epoch, jobview.DayText(m.Day, m.DayFromDate))
	if p := m.PartialRecovery; p.Recoveries > 0 {
		row("disk lost", "%s of partial recovery: %.3g of the samples are lost, %d rows were initialized anew; the model differs from that of an undisturbed run", humanize.Count(int64(p.Recoveries), "time"), p.LostSamples, p.RowsAnew)
	} else if p.Inherited {
		row("disk lost", "a model that it was made from differs from that of an undisturbed run")
	}
	if m.KeptShare != 1 {
		row("calibration", "trained on a share of %g of the negatives; predictions are corrected for it", m.KeptShare)
	}
	countAndNames(row, "fields", in.Fields)
	countAndNames(row, "dense features", in.Dense)
	row("table rows", "%d, %s in memory, %d seen once", in.Rows.Count, humanize.Bytes(in.Rows.MemoryBytes), in.Rows.SeenOnce)
	row("row", "%d %v values, %d of %s state, show, click, last seen, count: %d bytes", in.Layout.ValueDim, in.Layout.Format, in.Layout.StateDim, in.RowOptimizer, in.Layout.Bytes())
	row("last seen", "%s to %s", jobview.DayText(in.Rows.OldestDay, m.DayFromDate), jobview.DayText(in.Rows.NewestDay, m.DayFromDate))
	row("values", "root mean square %.5f", in.Rows.ValueRMS)
	row("dense part", "%d parameters; matrix products in %s", in.Parameters, in.Precision)
	for _, l := range in.Layers {
		row("  "+l.Name, "%s  root mean square %.5f", strings.Join(strings.Fields(fmt.Sprint(l.Shape)), " x "), l.RMS)
	}
	for _, f := range in.Faults {
		row("fault", "%s", f)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// countAndNames prints the number of names, and the names in lines of about 60 columns.
func countAndNames(row func(name, format string, args ...any), what string, names []string) {
	if len(names) == 0 {
		row(what, "none")
		return
	}
	line := fmt.Sprintf("%d:", len(names))
	for _, name := range names {
		if len(line)+1+len(name) > 60 {
			row(what, "%s", line)
			what, line = "", " "
		}
		line += " " + name
	}
	row(what, "%s", line)
}
