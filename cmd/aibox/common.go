package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
)

func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job file: `KEY=VALUE`, such as training.epochs=2 or 'data.train=[a.tsv,b.tsv]'; may be repeated"},
		&cli.StringFlag{Name: "date", Usage: "the job's `DATE`, as 2026-11-20; {{date}} in paths and the age of rows follow it (default: today in UTC)"},
	}
}

// oneArgument returns the command's only argument, which is what.
func oneArgument(c *cli.Context, what string) (string, error) {
	switch {
	case c.NArg() == 0:
		return "", usageErrorf("%s: name %s; see `%[1]s --help`", commandPath(c), what)
	case c.NArg() > 1:
		return "", usageErrorf("%s: want one argument, %s, but there are %d: %s", commandPath(c), what, c.NArg(), strings.Join(c.Args().Slice(), " "))
	}
	return c.Args().First(), nil
}

// noArguments fails when arguments were given to a command that takes none.
func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return usageErrorf("%s: unexpected argument %q: its input is named by flags; see `%[1]s --help`", commandPath(c), c.Args().First())
	}
	return nil
}

// needFlags fails when one of the named flags was not given a value.
func needFlags(c *cli.Context, names ...string) error {
	var missing []string
	for _, name := range names {
		values := []string{c.String(name)}
		if _, many := c.Value(name).(cli.StringSlice); many {
			values = c.StringSlice(name)
		}
		if !c.IsSet(name) || slices.Contains(values, "") {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usageErrorf("%s: %s is missing; see `%[1]s --help`", commandPath(c), strings.Join(missing, " and "))
	}
	return nil
}

// oneOf fails when the named flag has none of the values.
func oneOf(c *cli.Context, name string, values []string) error {
	if v := c.String(name); !slices.Contains(values, v) {
		return usageErrorf("%s: --%s %s: want one of %s.%s", commandPath(c), name, v, strings.Join(values, ", "), didYouMean("", v, values))
	}
	return nil
}

// formats are the names of all formats of data files.
var formats = []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"}

// commandPath is the command as typed, such as `aibox config check`.
func commandPath(c *cli.Context) string {
	if c.Command == nil || c.Command.HelpName == "" {
		return "aibox"
	}
	return c.Command.HelpName
}

// loadJob reads the job file that is the command's only argument.
func loadJob(c *cli.Context) (*configs.Job, error) {
	path, err := oneArgument(c, "the job file")
	if err != nil {
		return nil, err
	}
	return jobOfFlags(c, path)
}

// jobOfFlags reads a job file as the jobFlags say.
func jobOfFlags(c *cli.Context, path string) (*configs.Job, error) {
	return configs.Load(path, configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
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
