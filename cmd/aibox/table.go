package main

import (
	"slices"

	"github.com/urfave/cli/v2"
)

func tableCommand() *cli.Command {
	return &cli.Command{
		Name:  "table",
		Usage: "look into embedding tables, verify and compact them, take rows in and out",
		Description: `A table is named by the model directory that it belongs to, by the job file of
that model (with the --date and --set that it was trained with), or by its own
directory. One over several SSDs that belongs to no model is named by its first
directory, the others by --dir.`,
		Subcommands: []*cli.Command{
			tableStatsCommand(), tableGetCommand(), tableVerifyCommand(),
			tableCompactCommand(), tableExportCommand(), tableImportCommand(), tableOrphansCommand(),
		},
	}
}

// tableFlags are those of every subcommand of table, before its own.
func tableFlags(own ...cli.Flag) []cli.Flag {
	return slices.Concat(own, []cli.Flag{
		&cli.StringSliceFlag{Name: "dir", Usage: "a further `DIR` of a table over several SSDs; may be repeated, in any order"},
		&cli.StringFlag{Name: "memory", Usage: "`LIMIT` of a table on SSD for what it holds in memory (default: that of the model's job, or 256MiB)"},
	})
}

// foundTableFlags are those of the subcommands that take any table, which a job file
// may name.
func foundTableFlags(own ...cli.Flag) []cli.Flag {
	return tableFlags(slices.Concat(own, jobFlags())...)
}

// snapshotFlag chooses a snapshot.
func snapshotFlag() cli.Flag {
	return &cli.Uint64Flag{Name: "snapshot", Usage: "the snapshot of that `ID` (default: the model's, or the newest)"}
}

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }
