package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/internal/humanize"
	"aibox/trainer"
)

// remoteGenerations lists the models of a remote directory, and the snapshots there.
func remoteGenerations(c *cli.Context, uri string) error {
	all, total, err := trainer.RemoteGenerations(c.Context, uri, trainer.Options{Logger: newLogger(c)})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, all)
	}
	t := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "generation\tstate\tjob\tof\tsaved\tmade from\tsteps\tsize\tof its own\tpublished from")
	for _, g := range all {
		number, from := "", "new"
		if g.Generation != 0 {
			number = fmt.Sprint(g.Generation)
		}
		if g.StartedFrom != "" {
			from = g.StartedFrom
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", number, g.State, g.Job, g.Night, savedText(g.SavedAt), from, g.Steps, humanize.Bytes(g.Bytes), humanize.Bytes(g.OwnBytes), g.Owner)
	}
	if err := t.Flush(); err != nil || len(all) == 0 {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "in all: %s\n", humanize.Bytes(total))
	return err
}
