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
	return job, nil
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

// splitNames splits a list of names at commas.
func splitNames(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
