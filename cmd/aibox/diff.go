package main

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/tablediff"
	"aibox/trainer/modeldiff"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show which rows differ between two models",
		ArgsUsage: "BEFORE AFTER",
		Description: `BEFORE and AFTER are model directories or generations, as DIR@N. Counts, by field, the
rows of the embedding table that were added, dropped and moved, and lists the rows that
moved farthest. A row has moved if its values differ; the distance is Euclidean.

A row does not record its field. To find it, the command reads the data that the two
models were trained on, or the log that --data names, and assigns each row to the field
that its value occurs in. Other rows are counted as "(not in the data)", for example
those dropped because their value had not been seen for long, and those whose value
occurs only after the examples that are read (--examples).

Examples:

  aibox diff models/ctr@41 models/ctr@42
  aibox diff models/ctr@42 models/ctr --data 'logs/{{date}}/*.gz' --examples 0 --json`,
		Flags: append(cmdline.DateFlags(),
			&cli.StringSliceFlag{Name: "data", Usage: "`URI` of a log to find the fields of rows in; may be repeated", DefaultText: "the data that the models were trained on"},
			&cli.Int64Flag{Name: "examples", Value: 1_000_000, Usage: "read at most `NUMBER` examples of each model's data, or of the log; 0: all"},
			&cli.IntFlag{Name: "top", Value: 10, Usage: "list the `NUMBER` rows that moved farthest"},
			&cli.StringFlag{Name: "memory", Value: "1GiB", Usage: "`SIZE` of the memory for the rows compared at a time, in addition to that of the two tables; the other rows wait in temporary files in $TMPDIR, about as large as the embeddings of both models, or, if there is no space for them, the tables are read more often"},
			cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			before, after, o, err := diffArguments(c)
			if err != nil {
				return err
			}
			o.Logger = cmdline.NewLogger(c)
			d, err := modeldiff.Compare(c.Context, before, after, o)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, d)
			}
			return printDifference(c.App.Writer, d)
		},
	}
}

// leastDiffMemory prevents a size without a unit, as in --memory 1, from making the command read
// small tables millions of times.
const leastDiffMemory = 4 << 10

// diffArguments are the arguments and flags of the command.
func diffArguments(c *cli.Context) (before, after string, o modeldiff.Options, err error) {
	if c.NArg() != 2 {
		return "", "", o, cliargs.Errorf("%s: want two arguments, the model before and the one after, but there are %d; see `%[1]s --help`", cliargs.CommandPath(c), c.NArg())
	}
	dated, err := cmdline.DatedAlone(c)
	if err != nil {
		return "", "", o, err
	}
	if before, err = cmdline.Expand(c, dated, "the model before", c.Args().Get(0)); err != nil {
		return "", "", o, err
	}
	if after, err = cmdline.Expand(c, dated, "the model after", c.Args().Get(1)); err != nil {
		return "", "", o, err
	}
	if o.Data, err = cmdline.PathFlags(c, dated, "data"); err != nil {
		return "", "", o, err
	}
	o.Examples, o.Top = c.Int64("examples"), c.Int("top")
	for _, name := range []string{"examples", "top"} {
		if c.Int64(name) < 0 {
			return "", "", o, cliargs.Errorf("%s: --%s %d: want 0 or more", cliargs.CommandPath(c), name, c.Int64(name))
		}
	}
	o.MemoryBytes, err = cmdline.BytesFlag(c, "memory")
	if err == nil && o.MemoryBytes < leastDiffMemory {
		err = cliargs.Errorf("%s: --memory %s: want 4KiB or more", cliargs.CommandPath(c), c.String("memory"))
	}
	return before, after, o, err
}

func printDifference(w io.Writer, d *modeldiff.Difference) error {
	var b bytes.Buffer
	if d.SameDigest {
		fmt.Fprintf(&b, "%s and %s are equal bit for bit.\n\n", d.Before, d.After)
	}
	if !d.Comparable {
		fmt.Fprintf(&b, "The rows of %s consist of %s, those of %s of %s, so none is counted as moved.\n\n", d.Before, d.RowBefore, d.After, d.RowAfter)
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rows before\tafter\tadded\tdropped\tmoved\tmean distance\tlargest\t  field")
	group := func(g *tablediff.Group, name string) {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%s\t%s\t  %s\n", g.Before, g.After, g.Added, g.Dropped, g.Moved, distanceText(g.MeanDistance, g.Moved), distanceText(g.MaxDistance, g.Moved), name)
	}
	for i := range d.Fields {
		g := &d.Fields[i]
		switch {
		case g.Field != "":
			group(g, g.Field)
		case g.Before+g.After > 0:
			group(g, "(not in the data)")
		}
	}
	group(&d.Total, "all")
	if err := t.Flush(); err != nil {
		return err
	}
	if len(d.Moved) > 0 {
		fmt.Fprintln(&b, "\nRows that moved farthest:")
		fmt.Fprintln(t, "distance\tnorm before\tafter\tshow before\tafter\tkey\t  value")
		for i := range d.Moved {
			r := &d.Moved[i]
			fmt.Fprintf(t, "%.4g\t%.4g\t%.4g\t%.6g\t%.6g\t%#016x\t  %s\n", r.Distance, r.NormBefore, r.NormAfter, r.ShowBefore, r.ShowAfter, r.Key, valueText(r))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return cmdline.WriteLines(w, b.String())
}

// distanceText is a distance of rows that moved, if there are any.
func distanceText(d tablediff.Float, moved int64) string {
	if moved == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g", float64(d))
}

// valueText is what the row stands for, as far as it is known.
func valueText(r *tablediff.Row) string {
	switch {
	case r.Field == "":
		return "(not in the data)"
	case r.Value == "":
		return r.Field
	}
	return r.Field + "=" + r.Value
}
