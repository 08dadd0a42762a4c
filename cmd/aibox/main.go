// Command aibox trains click-through-rate models on one machine. One file per
// subcommand; what they do is in the packages they call.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"
)

// version is set by the linker (see Makefile).
var version = "development"

func main() {
	ctx, stop := withSignals(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code. Results go to
// stdout, logs and progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, permute(app, args))
	code := exitCode(ctx, err)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(stderr, explain(code, err))
	}
	return code
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "aibox",
		Usage:     "train click-through-rate models with huge embedding tables on one machine",
		UsageText: "aibox COMMAND [options] [arguments]",
		Description: `A first look:

  aibox config init --model dlrm --format criteo > job.yaml
  aibox config check job.yaml
  aibox train job.yaml
  aibox eval --model-dir model --data 'test/*.tsv.gz'

Exit codes: 0 done; 1 a fault of aibox itself; 2 bad usage or job file;
3 too many bad rows, or no usable data; 4 input or output failed;
130 interrupted.`,
		Version:     version,
		HideVersion: true,
		Suggest:     true,
		// A value such as [a.tsv,b.tsv] is one value.
		DisableSliceFlagSeparator: true,
		EnableBashCompletion:      true,
		UseShortOptionHandling:    false,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		Flags:                     logFlags(),
		// Errors are printed once, by run.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return usageErrorf("there is no command %q%s; `aibox help` lists them", name, didYouMean(c.App, name))
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			trainCommand(), evalCommand(), predictCommand(),
			generateCommand(), convertCommand(),
			configCommand(), inspectCommand(),
			completionCommand(), versionCommand(),
		},
	}
	for _, c := range app.Commands {
		finishCommand(c)
	}
	return app
}

// finishCommand gives c and its subcommands what all commands share.
func finishCommand(c *cli.Command) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	c.Flags = append(c.Flags, logFlags()...)
	for _, s := range c.Subcommands {
		finishCommand(s)
	}
}

func didYouMean(app *cli.App, name string) string {
	if s := cli.SuggestCommand(app.Commands, name); s != "" {
		return ". " + s
	}
	return ""
}
