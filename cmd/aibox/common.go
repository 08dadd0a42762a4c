package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
)

func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job file: `KEY=VALUE`, such as training.epochs=2 or 'data.train=[a.tsv,b.tsv]'; may be repeated"},
		dateFlag(),
	}
}

// formats are the names of all formats of data files.
var formats = []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"}

// loadJob reads the job file that is the command's only argument.
func loadJob(c *cli.Context) (*configs.Job, error) {
	path, err := cliargs.OneArgument(c, "the job file")
	if err != nil {
		return nil, err
	}
	return jobOfFlags(c, path)
}

// jobOfFlags reads a job file with the overrides and the date of the jobFlags.
func jobOfFlags(c *cli.Context, path string) (*configs.Job, error) {
	dated, err := datedJob(c)
	if err != nil {
		return nil, err
	}
	if path, err = expand(c, dated, "the job file", path); err != nil {
		return nil, err
	}
	job, err := configs.Load(path, configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
	if err != nil {
		return nil, err
	}
	for _, note := range job.Notes() {
		newLogger(c).Info(note)
	}
	for _, warning := range job.Warnings() {
		newLogger(c).Warn(warning)
	}
	return job, nil
}

// modelArgument returns the command's only argument, which names a model directory or one of
// its generations, and a job with the date for templates in other arguments.
func modelArgument(c *cli.Context) (string, *configs.Job, error) {
	dir, err := cliargs.OneArgument(c, "the model directory")
	if err != nil {
		return "", nil, err
	}
	dated, err := datedAlone(c)
	if err != nil {
		return "", nil, err
	}
	dir, err = expand(c, dated, "the model directory", dir)
	return dir, dated, err
}

// bytesFlag is the value of a flag that is a number of bytes, such as 100MiB; 0 if the flag
// was not given and has no default.
func bytesFlag(c *cli.Context, name string) (int64, error) {
	text := c.String(name)
	if text == "" && !c.IsSet(name) {
		return 0, nil
	}
	n, err := configs.ParseBytes(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q: want more than 0", text)
	}
	if err != nil {
		return 0, cliargs.Errorf("%s: --%s: %v", cliargs.CommandPath(c), name, err)
	}
	return int64(n), nil
}

// printJSON writes v, indented.
func printJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// writeLines writes lines without the spaces at their ends, which tables leave there.
func writeLines(w io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// splitNames splits a list of names at commas.
func splitNames(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
