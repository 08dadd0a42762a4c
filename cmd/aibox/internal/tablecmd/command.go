package tablecmd

import (
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
)

// Command is `aibox table` of a version of aibox.
func Command(version string) *cli.Command {
	return &cli.Command{
		Name:  "table",
		Usage: "inspect, verify and compact embedding tables, export and import their rows",
		Description: `Name a table by the model directory that it belongs to (or by a generation of it, as
DIR@N), by the job file of that model (with the --date and --set that it was trained
with), or by its own directory. If a table lies on several SSDs and belongs to no model,
give its first directory as the argument and the others with --dir.`,
		Subcommands: []*cli.Command{
			statscommand(), getcommand(), verifycommand(),
			compactcommand(), exportcommand(version), importcommand(), orphanscommand(),
		},
	}
}

// tableFlags are the flags that the subcommands of table share, after their own.
func tableFlags(own ...cli.Flag) []cli.Flag {
	return slices.Concat(own, []cli.Flag{
		&cli.StringSliceFlag{Name: "dir", Usage: "another `DIR` of a table on several SSDs; may be repeated, in any order"},
		&cli.StringFlag{Name: "memory", Usage: "`LIMIT` of the memory that a table on SSD uses (default: that of the model's job, or 256MiB)"},
	})
}

// foundTableFlags are the flags of the subcommands whose table may be named by a job
// file, too.
func foundTableFlags(own ...cli.Flag) []cli.Flag {
	return tableFlags(slices.Concat(own, cmdline.JobFlags())...)
}

// snapshotFlag chooses a snapshot.
func snapshotFlag() cli.Flag {
	return &cli.Uint64Flag{Name: "snapshot", Usage: "`ID` of the snapshot to read", DefaultText: "that of the model, or the newest"}
}
