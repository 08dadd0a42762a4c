package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "fetch a published model to this machine",
		ArgsUsage: "[JOB.yaml]",
		Description: `Fetches the newest model of a remote directory, or the one that --from URI@N names, to a
model directory that has no model yet, and verifies every byte. A job file gives the
source (output.remote), the destination (output.model_dir, sparse_table.dirs) and the
HDFS settings; --from, --to and --dirs replace or override it. The table's directories,
and their number, may differ from those of the machine where the model was made. If
output.model_dir has a date, the newest model is that of the latest night, even if an
earlier night was trained again later.

The model can be used before all of it has arrived. It appears as soon as everything but
the rows in the files of a table on SSD has been fetched, and the log says so. Until the
command ends, commands that read the model (eval, predict, inspect, diff, table) fetch
missing rows from the remote directory.

A damaged file is fetched again. If files of the newest model are missing or damaged
there, the next older model is restored instead, and the log says so; with URI@N this is
an error. If that happens after the model has appeared, the model is withdrawn. To resume
after an interruption, run the same command again; this also works for a model whose rows
"aibox train" was fetching.

If DIR already has the very same model, it is verified. If it is intact, the command says
so and succeeds; otherwise the model is restored again beside it, fetching only what is
missing or damaged. Any other model there is an error. The restored model gives the same
predictions, and the next night continues from it, bit for bit.

Examples:

  aibox restore /etc/aibox/hdfs-nightly.yaml
  aibox generations hdfs://nameservice/models/ctr
  aibox restore --from hdfs://nameservice/models/ctr@41 --to models/ctr \
      --dirs /mnt/ssd0/tables --dirs /mnt/ssd1/tables`,
		Flags: append(cmdline.JobFlags(),
			&cli.StringFlag{Name: "from", Usage: "`URI` of the remote directory, or URI@N (default: output.remote)"},
			&cli.StringFlag{Name: "to", Usage: "model directory `DIR` (default: output.model_dir)"},
			&cli.StringSliceFlag{Name: "dirs", Usage: "directory `DIR` for the table, as in sparse_table.dirs; may be repeated (default: sparse_table.dirs, or the model directory)"},
			&cli.StringFlag{Name: "name", Usage: "restore a model of the job called `NAME` (default: the name in the job file, or the only job there)"},
			limitFlag(), cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			o, err := restoreOptions(c)
			if err != nil {
				return err
			}
			out, err := transfer.Restore(c.Context, *o)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, out)
			}
			if out.Already {
				_, err := fmt.Fprintf(c.App.Writer, "%s already has the model of %s, and it is intact\n", out.ModelDir, out.From)
				return err
			}
			without := ""
			if len(out.Dropped) > 0 {
				without = "; damaged there and not restored: " + strings.Join(out.Dropped, ", ")
			}
			usable := "it was already usable"
			if out.UsableSeconds > 0 {
				usable = fmt.Sprintf("it was usable after %.1f s", out.UsableSeconds)
			}
			_, err = fmt.Fprintf(c.App.Writer, "%s is restored to %s: %s, of which %s were fetched, in %.1f s; %s%s\n",
				out.From, out.ModelDir, humanize.Bytes(out.Bytes), humanize.Bytes(out.Moved), out.Seconds, usable, without)
			return err
		},
	}
}

func restoreOptions(c *cli.Context) (*transfer.RestoreOptions, error) {
	o := &transfer.RestoreOptions{Options: transfer.Options{Logger: cmdline.NewLogger(c), Version: version}}
	var dated *configs.Job
	var err error
	if c.NArg() == 0 {
		if err := cliargs.NeedFlags(c, "from", "to"); err != nil {
			return nil, cliargs.Errorf("%v, or name the job file", err)
		}
		dated, err = cmdline.DatedWithHDFS(c)
	} else if dated, err = cmdline.LoadJob(c); err == nil {
		o.From, o.To, o.Dirs, o.Job = dated.Output.Remote, dated.Output.ModelDir, dated.SparseTable.Dirs, dated.PlainName()
		o.BytesPerSecond = int64(dated.Output.RemoteBytesPerSecond)
		if o.From == "" && !c.IsSet("from") {
			return nil, cliargs.Errorf("%s: the job has no output.remote; name the remote directory with --from", cliargs.CommandPath(c))
		}
	}
	if err != nil {
		return nil, err
	}
	o.HDFS = dated.Data.HDFS
	for name, to := range map[string]*string{"from": &o.From, "to": &o.To} {
		if c.IsSet(name) {
			if *to, err = cmdline.PathFlag(c, dated, name); err != nil {
				return nil, err
			}
		}
	}
	if c.IsSet("from") {
		o.From, o.Number = remote.SplitURI(o.From)
	}
	if c.IsSet("dirs") {
		if o.Dirs, err = cmdline.PathFlags(c, dated, "dirs"); err != nil {
			return nil, err
		}
	}
	if c.IsSet("name") {
		o.Job = c.String("name")
	}
	if c.IsSet("limit") {
		if o.BytesPerSecond, err = cmdline.BytesFlag(c, "limit"); err != nil {
			return nil, err
		}
	}
	return o, nil
}
