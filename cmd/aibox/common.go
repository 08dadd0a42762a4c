package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
)

func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "log-format", Value: "text", Usage: "`FORMAT` of the log on standard error: text or json", Category: "Logging"},
		&cli.StringFlag{Name: "log-level", Value: "info", Usage: "least `LEVEL` that is logged: debug, info, warn or error", Category: "Logging"},
	}
}

// logOption is the value of a log flag, given before or after the command.
func logOption(c *cli.Context, name string) string {
	for _, l := range c.Lineage() {
		if l.IsSet(name) && l.String(name) != "" {
			return l.String(name)
		}
	}
	return c.String(name)
}

// newLogger makes the logger that the flags ask for.
func newLogger(c *cli.Context, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(logOption(c, "log-level"))); err != nil {
		return nil, usageErrorf("--log-level %s: want debug, info, warn or error", logOption(c, "log-level"))
	}
	o := &slog.HandlerOptions{Level: level}
	switch f := logOption(c, "log-format"); f {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	default:
		return nil, usageErrorf("--log-format %s: want text or json", f)
	}
}

func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job file: `KEY=VALUE`, such as training.epochs=2 or data.train=[a.tsv,b.tsv]; may be repeated"},
		&cli.StringFlag{Name: "date", Usage: "the job's `DATE`, as 2026-11-20; {{date}} in paths and the age of rows follow it (default: today in UTC)"},
	}
}

// loadJob reads the job file that is the command's only argument.
func loadJob(c *cli.Context) (*configs.Job, error) {
	if c.NArg() != 1 {
		return nil, usageErrorf("aibox %s: want one argument, the job file; got %d", c.Command.FullName(), c.NArg())
	}
	return configs.Load(c.Args().First(), configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
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

// noArguments fails when arguments were given to a command that takes none.
func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return usageErrorf("aibox %s: unexpected argument %q", c.Command.FullName(), c.Args().First())
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
