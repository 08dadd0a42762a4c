package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/generations"
)

// shownOfRun is how many digits of a run's ID are printed; they suffice to distinguish runs.
const shownOfRun = 8

// remoteGenerations lists the models of a remote directory, and the snapshots and rows there.
func remoteGenerations(c *cli.Context, job *configs.Job, uri string) error {
	all, total, err := generations.ListRemote(c.Context, job, uri, cmdline.NewLogger(c))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, all)
	}
	if len(all) == 0 {
		return cmdline.WriteLines(c.App.Writer, uri+" has no models\n")
	}
	return printRemoteGenerations(c.App.Writer, all, total)
}

func printRemoteGenerations(w io.Writer, all []generations.Remote, total int64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "generation\tstate\tjob\tof\tsaved\tmade from\tsteps\trows\tsize\tof its own\trun\tpublished from")
	for _, g := range all {
		number, from, rows, run := "", "new", "", g.Run[:min(shownOfRun, len(g.Run))]
		if g.Generation != 0 {
			number = fmt.Sprint(g.Generation)
		}
		if g.StartedFrom != "" {
			from = g.StartedFrom
		}
		state := string(g.State)
		if g.Damaged {
			state += ", damaged"
		}
		if g.State == generations.PriorityRows {
			rows = fmt.Sprint(g.Rows)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", number, state, g.Job, g.Night, savedText(g.SavedAt), from, g.Steps, rows, humanize.Bytes(g.Bytes), humanize.Bytes(g.OwnBytes), run, g.Owner)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "in all: %s\n", humanize.Bytes(total))
	return err
}
