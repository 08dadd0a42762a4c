package tablecmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/internal/rowfile"
	"aibox/internal/terminal"
	"aibox/trainer/jobsource"
)

func exportcommand(version string) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a table's rows to a Parquet file",
		ArgsUsage: "TABLE",
		Description: `Columns: key (uint64), values and state (lists of float), show, click (float),
last_seen, count (uint32). They have exactly the bits of the table, and import reads them
back. If weight_decay or table_l2 shrinks rows, however, values are those after the
model's last step, as float32, and the last word of state is the row's clock. The rows
are in no particular order. The file appears under its name once it is complete.
docs/serving.md explains how other programs predict with it; they must use a row only if
its count is at least sparse_table.admission.min_occurrences.

Examples:

  aibox table export model --to rows.parquet
  aibox table export /mnt/ssd0/table --to hdfs:///backup/rows.parquet --memory 1GiB`,
		Flags: foundTableFlags(
			&cli.StringFlag{Name: "to", Usage: "output `FILE`, a path or hdfs://…, ending in .parquet"},
			snapshotFlag(), cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) error { return tableExport(c, version) },
	}
}

// exportReport is what export prints as JSON.
type exportReport struct {
	Dir  string `json:"dir"`
	File string `json:"file"`
	Rows int64  `json:"rows"`
}

func tableExport(c *cli.Context, version string) (err error) {
	if err := cliargs.NeedFlags(c, "to"); err != nil {
		return err
	}
	to := c.String("to")
	if !strings.HasSuffix(to, ".parquet") {
		return cliargs.Errorf("%s: --to %s: want a name that ends in .parquet", cliargs.CommandPath(c), to)
	}
	found, err := onlyTable(c)
	if err != nil {
		return err
	}
	defer found.close()
	if to, err = cmdline.PathFlag(c, found.dated, "to"); err != nil {
		return err
	}
	log := cmdline.NewLogger(c)
	t, err := found.open(c.Context)
	if err != nil {
		return err
	}
	defer closeTable(log, t)
	sources := jobsource.New(found.job(), log)
	defer cmdline.CloseWith(log, "sources", sources)
	if err := sources.RefuseOverwrite(c.Context, found.dirs(), []string{to}); err != nil {
		return err
	}
	file, err := sources.Create(c.Context, to)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Abort())
		}
	}()
	rows, err := found.settled(t)
	if err != nil {
		return err
	}
	w, err := rowfile.NewWriter(file, rows.Layout(), version)
	if err != nil {
		return err
	}
	progress, d := terminal.StartTask(cmdline.ConsoleOf(c), log, "exporting", "rows", t.Stats().Rows)
	defer d.Stop()
	r := exportReport{Dir: found.dir(), File: to}
	err = rows.Scan(c.Context, func(key uint64, row []float32) error {
		r.Rows++
		progress.SetDone(r.Rows)
		return w.Add(key, row)
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = file.Close()
	}
	d.Stop()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, r)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s written to %s\n", humanize.Count(r.Rows, "row"), to)
	return err
}
