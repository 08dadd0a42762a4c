package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/internal/jobview"
	"aibox/trainer/generations"
	"aibox/trainer/modeldir"
)

func generationsCommand() *cli.Command {
	return &cli.Command{
		Name:      "generations",
		Usage:     "list the models that a model directory holds",
		ArgsUsage: "DIR|URI",
		Description: `Each training run that produces a model adds a generation to the model directory.
output.keep_generations in the job file limits how many generations stay. One of them is
published: it is the model that commands read when given DIR. The others are read by
number, as DIR@N, and published by "aibox rollback".

A generation listed as resumable has a snapshot. If its run is interrupted, the next run
of the same job resumes from the snapshot; a run of another job deletes it. A generation
listed as unfinished belongs to a running job, or is deleted by the next run. For a model
that "aibox restore" or "aibox train" is still fetching, the list says how much may be
missing.

For a remote directory (hdfs://, file:// or a path), the list has the models published
there, most recently published first, and the snapshots that snapshots.remote uploaded,
from which "aibox train" resumes. "aibox restore" restores URI@N. Models and snapshots
share files: the size of each counts all of its files, and the size of its own is what
deleting it would free. Entries listed as rows were saved by snapshots.priority; a lost
directory is restored from them and from the snapshot of the same run.

Examples:

  aibox generations models/ctr
  aibox eval --model-dir models/ctr@41 --data test.tsv
  aibox generations models/ctr --json
  aibox generations hdfs://nameservice/models/ctr`,
		Flags: append(cmdline.HDFSFlags(), cmdline.JSONFlag()),
		Action: func(c *cli.Context) error {
			dir, dated, err := modelDirArgument(c)
			if err != nil {
				return err
			}
			if isRemote(dir) {
				return remoteGenerations(c, dated, dir)
			}
			all, err := generations.List(dir)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, all)
			}
			return printGenerations(c.App.Writer, dir, all)
		},
	}
}

// modelDirArgument returns the command's only argument, which names a model directory and
// none of its generations, and the job of cmdline.ModelArgument.
func modelDirArgument(c *cli.Context) (string, *configs.Job, error) {
	dir, dated, err := cmdline.ModelArgument(c)
	if err != nil {
		return "", nil, err
	}
	if of, number := modeldir.SplitName(dir); number != 0 {
		hint := ""
		if c.Command.Name == "rollback" {
			hint = fmt.Sprintf(": `aibox rollback %s --to %d`", of, number)
		}
		return "", nil, cliargs.Errorf("%s: %s is one generation of a model directory; name the directory%s", cliargs.CommandPath(c), dir, hint)
	}
	return dir, dated, nil
}

func printGenerations(w io.Writer, dir string, all []generations.Generation) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "generation\tstate\tof\tsaved\tmade from\tsteps\tAUC\tlog loss\tsize\t")
	for _, g := range all {
		auc, loss := "", ""
		if g.Eval != nil {
			auc, loss = jobview.Metric(g.Eval.AUC, 4), jobview.Metric(g.Eval.LogLoss, 4)
		}
		row := []string{fmt.Sprint(g.Generation), string(g.State), dateOf(&g), savedText(g.SavedAt), madeFrom(dir, &g), "", auc, loss, humanize.Bytes(g.Bytes), remarkOn(&g)}
		if g.Steps > 0 {
			row[5] = fmt.Sprint(g.Steps)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return cmdline.WriteLines(w, b.String())
}

// remarkOn returns a remark on what is wrong with a generation, or not complete yet.
func remarkOn(g *generations.Generation) string {
	a := g.Arriving
	switch {
	case g.Fault != "" || a == nil:
		return g.Fault
	case a.Damaged != "":
		return "never fetched completely: " + a.Damaged
	}
	return fmt.Sprintf("up to %s of it have not been fetched from %s yet", humanize.Bytes(a.LackingBytes), a.Remote)
}

// dateOf is the date of a generation's job, or, if it has none, how many runs led to it.
func dateOf(g *generations.Generation) string {
	if g.Night != "" || g.Day == 0 {
		return g.Night
	}
	return jobview.DayText(g.Day, g.DayFromDate)
}

// savedText is a time in the system's time zone.
func savedText(rfc3339 string) string {
	at, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return rfc3339
	}
	return at.Local().Format(time.DateTime)
}

// madeFrom names the model that a generation was made from, by its number alone if that is, or was,
// in the same directory.
func madeFrom(dir string, g *generations.Generation) string {
	from := strings.TrimPrefix(g.StartedFrom, dir+"@")
	switch {
	case g.StartedFromGone:
		return from + " (gone)"
	case from != "":
		return from
	case g.State == generations.Unfinished || g.State == generations.Damaged || g.State == generations.Newer:
		return ""
	}
	return "new"
}
