package cmdline

import (
	"io"
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/internal/terminal"
)

const LogFormatFlag, LogLevelFlag = "log-format", "log-level"

var (
	LogFormats = []string{"text", "json"}
	LogLevels  = []string{"debug", "info", "warn", "error"}
)

// LogFlags may be given before or after the command.
func LogFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: LogFormatFlag, Value: "text", Usage: "`FORMAT` of everything on standard error: text, or json for one object per line", Category: "Logging"},
		&cli.StringFlag{Name: LogLevelFlag, Value: "info", Usage: "lowest `LEVEL` to log: debug, info (includes progress lines), warn or error", Category: "Logging"},
	}
}

// WantsJSON reports whether a command line asks for a log in JSON. It is called
// before the command line is parsed, so that a mistake in it is reported in JSON too.
func WantsJSON(args []string) bool {
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

// CheckLogFlags fails if a log flag has an unknown value.
func CheckLogFlags(c *cli.Context) error {
	if f := logOption(c, LogFormatFlag); !slices.Contains(LogFormats, f) {
		return cliargs.Errorf("--log-format %s: want text or json.%s", f, cliargs.DidYouMean("", f, LogFormats))
	}
	if l := logOption(c, LogLevelFlag); !slices.Contains(LogLevels, l) {
		return cliargs.Errorf("--log-level %s: want debug, info, warn or error.%s", l, cliargs.DidYouMean("", l, LogLevels))
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

// ConsoleOf is the console of the command's application.
func ConsoleOf(c *cli.Context) *terminal.Console { return c.App.ErrWriter.(*terminal.Console) }

// CloseWith closes c. It only logs a failure, because closing c cannot damage anything that was
// read or written.
func CloseWith(log *slog.Logger, what string, c io.Closer) {
	if err := c.Close(); err != nil {
		log.Warn("could not close "+what, "error", err)
	}
}

// NewLogger returns the logger that the flags ask for.
func NewLogger(c *cli.Context) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(logOption(c, LogLevelFlag))); err != nil {
		panic(err) // CheckLogFlags has checked it
	}
	return ConsoleOf(c).Logger(level)
}
