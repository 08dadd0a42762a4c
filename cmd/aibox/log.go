package main

import (
	"io"
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/internal/terminal"
)

const logFormatFlag, logLevelFlag = "log-format", "log-level"

var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

// logFlags may be given before or after the command.
func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: logFormatFlag, Value: "text", Usage: "`FORMAT` of everything on standard error: text, or json for one object per line", Category: "Logging"},
		&cli.StringFlag{Name: logLevelFlag, Value: "info", Usage: "lowest `LEVEL` that is logged: debug, info (with lines of progress), warn or error", Category: "Logging"},
	}
}

// wantsJSON reports whether a command line asks for a log in JSON. It is called
// before the command line is parsed, so that a mistake in it is reported in JSON too.
func wantsJSON(args []string) bool {
	json := false
	for i, a := range args {
		switch a {
		case "--":
			return json
		case "--log-format", "-log-format":
			json = i+1 < len(args) && args[i+1] == "json"
		case "--log-format=json", "-log-format=json":
			json = true
		case "--log-format=text", "-log-format=text":
			json = false
		}
	}
	return json
}

// checkLogFlags fails if a log flag has an unknown value.
func checkLogFlags(c *cli.Context) error {
	if f := logOption(c, logFormatFlag); !slices.Contains(logFormats, f) {
		return cliargs.Errorf("--log-format %s: want text or json.%s", f, cliargs.DidYouMean("", f, logFormats))
	}
	if l := logOption(c, logLevelFlag); !slices.Contains(logLevels, l) {
		return cliargs.Errorf("--log-level %s: want debug, info, warn or error.%s", l, cliargs.DidYouMean("", l, logLevels))
	}
	return nil
}

// logOption returns the value of a log flag, which may be given before or after the
// command.
func logOption(c *cli.Context, name string) string {
	for _, l := range c.Lineage() {
		if l.IsSet(name) && l.String(name) != "" {
			return l.String(name)
		}
	}
	return c.String(name)
}

// consoleOf is the console of the command's application.
func consoleOf(c *cli.Context) *terminal.Console { return c.App.ErrWriter.(*terminal.Console) }

// closeWith closes c. It only logs a failure, because closing c cannot spoil anything
// that was read or written.
func closeWith(log *slog.Logger, what string, c io.Closer) {
	if err := c.Close(); err != nil {
		log.Warn("could not close "+what, "error", err)
	}
}

// newLogger returns the logger that the flags ask for.
func newLogger(c *cli.Context) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(logOption(c, logLevelFlag))); err != nil {
		panic(err) // checkLogFlags has checked it
	}
	return consoleOf(c).Logger(level)
}
