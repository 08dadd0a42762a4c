package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
)

// The functions in this file expand the templates of job files, such as {{date -1d}},
// in paths on the command line.

// DateFlags are the flags of commands without a job file: --set and --date, as for
// DatedAlone.
func DateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "the time zone of {{date}}, as `timezone=NAME`"},
		DateFlag(),
	}
}

// HDFSFlags are the flags of commands without a job file that reach HDFS: --set and --date, as for
// DatedWithHDFS.
func HDFSFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "HDFS settings, as in a job file: `data.hdfs.KEY=VALUE`, or the time zone of {{date}}, as timezone=NAME; may be repeated"},
		DateFlag(),
	}
}

func DateFlag() cli.Flag {
	return &cli.StringFlag{Name: "date", Usage: "the `DATE`, such as 2026-11-20, that {{date}} expands to in paths on the command line and in the job file, and relative to which the age of rows is counted (default: today, in the job's timezone or the system's)"}
}

// DatedJob returns a job with nothing but a date, for a command that has no job file or
// has not read it yet. --set timezone=… applies to it.
func DatedJob(c *cli.Context) (*configs.Job, error) {
	job, err := configs.Dated(configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
	if err != nil {
		return nil, cliargs.Errorf("%s: %v", cliargs.CommandPath(c), err)
	}
	return job, nil
}

// DatedAlone returns the job of a command without a job file. Of --set it accepts only timezone,
// because it has no use for other keys.
func DatedAlone(c *cli.Context) (*configs.Job, error) {
	if err := onlySets(c, "only timezone=NAME", "timezone="); err != nil {
		return nil, err
	}
	return DatedJob(c)
}

// DatedWithHDFS is DatedAlone for a command that uses HDFS: of --set it also accepts the keys of
// data.hdfs.
func DatedWithHDFS(c *cli.Context) (*configs.Job, error) {
	if err := onlySets(c, "only timezone=NAME and data.hdfs.KEY=VALUE", "timezone=", configs.HDFSKeys); err != nil {
		return nil, err
	}
	job, err := configs.DatedWithHDFS(configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
	if err != nil {
		return nil, cliargs.Errorf("%s: %v", cliargs.CommandPath(c), err)
	}
	return job, nil
}

// onlySets fails if a --set starts with none of begins.
func onlySets(c *cli.Context, allowed string, begins ...string) error {
	for _, set := range c.StringSlice("set") {
		if !slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(strings.TrimSpace(set), begin) }) {
			return cliargs.Errorf("%s: --set %s: without a job file, %s can be set", cliargs.CommandPath(c), set, allowed)
		}
	}
	return nil
}

// Expand replaces the templates in an argument; where names it in errors.
func Expand(c *cli.Context, job *configs.Job, where, text string) (string, error) {
	expanded, err := job.Expand(where, text)
	if err != nil {
		return "", cliargs.Errorf("%s: %v", cliargs.CommandPath(c), err)
	}
	return expanded, nil
}

// PathFlag returns the value of a flag that names a file or directory, with templates
// expanded.
func PathFlag(c *cli.Context, job *configs.Job, name string) (string, error) {
	return Expand(c, job, "--"+name, c.String(name))
}

// PathFlags returns the values of a flag that names several files or directories.
func PathFlags(c *cli.Context, job *configs.Job, name string) (paths []string, err error) {
	for _, text := range c.StringSlice(name) {
		path, err := Expand(c, job, "--"+name, text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
