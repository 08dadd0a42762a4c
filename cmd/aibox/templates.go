package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
)

// This file has paths on the command line take the templates of job files, such
// as {{date -1d}}.

// dateFlags are the flags of commands without a job file: the --set and --date of
// datedAlone.
func dateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "the time zone of {{date}}, as `timezone=NAME`"},
		dateFlag(),
	}
}

func dateFlag() cli.Flag {
	return &cli.StringFlag{Name: "date", Usage: "the `DATE`, as 2026-11-20, that {{date}} in paths stands for, on the command line as in the job file, and that the age of rows follows (default: today, in the job's timezone or the system's)"}
}

// datedJob is the job of a command that has no job file, or none yet: nothing but
// the date. --set timezone=… applies to it.
func datedJob(c *cli.Context) (*configs.Job, error) {
	job, err := configs.Dated(configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
	if err != nil {
		return nil, cliargs.Errorf("%s: %v", cliargs.CommandPath(c), err)
	}
	return job, nil
}

// datedAlone is the job of a command that gets no job file at all. Of --set it takes
// timezone alone, because it has no use for other keys.
func datedAlone(c *cli.Context) (*configs.Job, error) {
	for _, set := range c.StringSlice("set") {
		if !strings.HasPrefix(strings.TrimSpace(set), "timezone=") {
			return nil, cliargs.Errorf("%s: --set %s: without a job file, only timezone=NAME can be set", cliargs.CommandPath(c), set)
		}
	}
	return datedJob(c)
}

// expand replaces the templates in an argument, which where names.
func expand(c *cli.Context, job *configs.Job, where, text string) (string, error) {
	expanded, err := job.Expand(where, text)
	if err != nil {
		return "", cliargs.Errorf("%s: %v", cliargs.CommandPath(c), err)
	}
	return expanded, nil
}

// pathFlag is the value of a flag that names a file or directory.
func pathFlag(c *cli.Context, job *configs.Job, name string) (string, error) {
	return expand(c, job, "--"+name, c.String(name))
}

// pathFlags are the values of a flag that names several.
func pathFlags(c *cli.Context, job *configs.Job, name string) (paths []string, err error) {
	for _, text := range c.StringSlice(name) {
		path, err := expand(c, job, "--"+name, text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
