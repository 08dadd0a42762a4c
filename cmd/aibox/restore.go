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
		Usage:     "bring a published model to this machine",
		ArgsUsage: "[JOB.yaml]",
		Description: `Brings the newest model of a remote directory, or the one that --from URI@N names, to a
model directory in which there is no model yet, and verifies every byte. A job file says
where it is (output.remote), where it is put (output.model_dir, sparse_table.dirs) and
how HDFS is reached; --from, --to and --dirs say it without one or instead. The
directories of the table, and their number, need not be those of the machine where the
model was made. Of a job with a date in output.model_dir, the newest model is that of the
latest night, also if an earlier night was trained again after it.

The model can be used before all of it has arrived: it is there as soon as everything but
the rows in the files of a table on SSD has been fetched, which the log says. Until the
command ends, what reads the model (eval, predict, inspect, diff, table) takes rows that
are not there yet from the remote directory.

A file that is damaged is fetched again. If the newest model cannot be restored because
files of it are missing or damaged, the newest older one is restored, which the log says;
with URI@N that is an error. If that is found out when the model is used already, it is
taken back. After an interruption, the same command goes on where it ended, also with a
model whose rows were being fetched by "aibox train". Where the very same model is in DIR
already, it is verified: if nothing of it is missing or damaged, the command says so and succeeds, else
it restores the model once more beside it, and fetches only what is missing or damaged. Another
model there is an error. The model predicts what it predicted before, and the next night goes
on from it, both to the same bits.

Examples:

  aibox restore /etc/aibox/hdfs-nightly.yaml
  aibox generations hdfs://nameservice/models/ctr
  aibox restore --from hdfs://nameservice/models/ctr@41 --to models/ctr \
      --dirs /mnt/ssd0/tables --dirs /mnt/ssd1/tables`,
		Flags: append(cmdline.JobFlags(),
			&cli.StringFlag{Name: "from", Usage: "`URI` of the remote directory, or URI@N (default: output.remote)"},
			&cli.StringFlag{Name: "to", Usage: "model directory `DIR` (default: output.model_dir)"},
			&cli.StringSliceFlag{Name: "dirs", Usage: "directory `DIR` for the table, as in sparse_table.dirs; may be repeated (default: sparse_table.dirs, or the model directory)"},
			&cli.StringFlag{Name: "name", Usage: "restore a model of the job called `NAME` (default: that of the job file, or of the only job there)"},
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
				_, err := fmt.Fprintf(c.App.Writer, "%s has the model of %s already, and it is whole\n", out.ModelDir, out.From)
				return err
			}
			without := ""
			if len(out.Dropped) > 0 {
				without = "; damaged there and not restored: " + strings.Join(out.Dropped, ", ")
			}
			usable := "it was usable already"
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
			return nil, cliargs.Errorf("%s: the job has no output.remote; name the remote directory by --from", cliargs.CommandPath(c))
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
