package tablecmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/trainer/modeldir"
)

func orphanscommand() *cli.Command {
	return &cli.Command{
		Name:      "orphans",
		Usage:     "list, and delete, tables on SSDs that no model needs any more",
		ArgsUsage: "DIR|JOB.yaml...",
		Description: `DIR is a directory that job files name in sparse_table.dirs; a job file stands for all
directories that it names. Each table there belongs to a model, and the run that replaces
the model deletes the table. Tables are left behind if someone deletes a model directory,
or kills a run without a snapshot and never runs the job again. They are listed with
size, age, model directory, and the reason why no model needs them. --free deletes them,
except those whose model directory is listed as unknown. If the model directory is gone
or now has another model, the table's model may have been moved or copied, or its disk
may not be mounted: --free then deletes the table only if DIR is the table's own
directory.

A table is not listed if a run is writing it, if an interrupted run can resume with it,
or if a model that aibox knows of needs it: the model that it was made for (by whatever
path), a copy of that model that has been used, or a model beside one of these. A model
directory that was moved and not used since is not known: name it with --model. To give
up an interrupted run, delete the directory of its generation, which "aibox generations"
lists as resumable. Its table is listed from then on, and is deleted if DIR names it.

Examples:

  aibox table orphans /mnt/ssd0/tables /mnt/ssd1/tables
  aibox table orphans nightly.yaml --model /backup/model --free
  aibox table orphans --free /mnt/ssd0/tables/model-gen-000001-52fa`,
		Flags: append(cmdline.JobFlags(),
			&cli.BoolFlag{Name: "free", Usage: "delete the listed tables, except those whose model directory is unknown, and those whose model is no longer in its directory unless DIR names them"},
			&cli.StringSliceFlag{Name: "model", Usage: "model directory `DIR` whose tables, and those of models beside it, are needed; may be repeated"},
			cmdline.JSONFlag(),
		),
		Action: tableOrphans,
	}
}

// orphansReport is what orphans prints as JSON.
type orphansReport struct {
	Orphans    []modeldir.Orphan `json:"orphans"`
	Bytes      int64             `json:"bytes"`
	FreedBytes int64             `json:"freed_bytes"`
}

func tableOrphans(c *cli.Context) error {
	if c.NArg() == 0 {
		return cliargs.Errorf("%s: name a directory of sparse_table.dirs, or a job file; see `%[1]s --help`", cliargs.CommandPath(c))
	}
	dated, err := cmdline.DatedJob(c)
	if err != nil {
		return err
	}
	models, err := cmdline.PathFlags(c, dated, "model")
	if err != nil {
		return err
	}
	for i, m := range models {
		models[i], _ = modeldir.SplitName(m)
		if _, err := os.Stat(models[i]); err != nil {
			return err // a mistake here would cost a table
		}
	}
	var dirs []string
	jobs := 0
	for _, path := range c.Args().Slice() {
		if path, err = cmdline.Expand(c, dated, "the argument", path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			dirs = append(dirs, path)
			continue
		}
		jobs++
		job, err := cmdline.JobOfFlags(c, path)
		if err != nil {
			return err
		}
		if len(job.SparseTable.Dirs) == 0 {
			return cliargs.Errorf("%s: %s has no sparse_table.dirs: its tables are in the model directory", cliargs.CommandPath(c), path)
		}
		dirs, models = append(dirs, job.SparseTable.Dirs...), append(models, job.Output.ModelDir)
	}
	if jobs == 0 {
		if _, err := cmdline.DatedAlone(c); err != nil {
			return err
		}
	}
	r := orphansReport{Orphans: []modeldir.Orphan{}}
	found, err := modeldir.Orphans(dirs, models)
	if err != nil {
		return err
	}
	var failed []error
	for _, o := range found {
		r.Orphans = append(r.Orphans, o)
		r.Bytes += o.Bytes
		if !c.Bool("free") || !o.MayBeFreed() {
			continue
		}
		if err := o.Free(models); err != nil {
			failed = append(failed, err)
		} else {
			r.FreedBytes += o.Bytes
		}
	}
	if c.Bool("json") {
		err = cmdline.PrintJSON(c.App.Writer, r)
	} else {
		err = printOrphans(c, &r)
	}
	return errors.Join(append(failed, err)...)
}

func printOrphans(c *cli.Context, r *orphansReport) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(r.Orphans) > 0 {
		fmt.Fprintln(t, "directory\tsize\tage\tmodel directory\twhy")
	}
	for _, o := range r.Orphans {
		model := o.ModelDir
		if o.Unknown {
			model = "unknown"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", o.Dir, humanize.Bytes(o.Bytes), time.Since(o.Modified).Round(time.Second), model, o.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	what := humanize.Count(int64(len(r.Orphans)), "table directory")
	if n := len(r.Orphans); n != 1 {
		what = fmt.Sprintf("%d table directories", n)
	}
	switch {
	case len(r.Orphans) == 0:
		fmt.Fprintln(&b, "every table belongs to a model or to a run")
	case c.Bool("free"):
		fmt.Fprintf(&b, "%s, %s freed\n", what, humanize.Bytes(r.FreedBytes))
	default:
		fmt.Fprintf(&b, "%s, %s; nothing is deleted without --free\n", what, humanize.Bytes(r.Bytes))
	}
	var kept []string
	for _, o := range r.Orphans {
		if o.Undecided && !o.MayBeFreed() {
			kept = append(kept, humanize.ShellWord(o.Dir))
		}
	}
	if len(kept) > 0 && c.Bool("free") {
		fmt.Fprintf(&b, "a table is kept if its model is not in its directory any more, since a model that was moved or copied may need it; if none does:\n  aibox table orphans --free %s\n", strings.Join(kept, " "))
	}
	_, err := c.App.Writer.Write(b.Bytes())
	return err
}
