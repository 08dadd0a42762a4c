package main

import (
	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
)

// This file has paths on the command line take the templates of job files, such
// as {{date -1d}}.

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
