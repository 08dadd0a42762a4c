// Command aibox trains click-through-rate models on one machine. Each subcommand has its own file,
// and those of `aibox table` are in package tablecmd. The actual work is done by the packages that
// they call.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/cliargs"
	"aibox/internal/errkind"
	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/internal/process"
	"aibox/internal/terminal"
)

// version is set by the linker (see Makefile).
var version = "development"

// panicPatience is how long a job may take to end in an orderly way after a
// panic.
const panicPatience = 30 * time.Second

func main() {
	con := terminal.New(os.Stderr, cmdline.WantsJSON(os.Args))
	panics.ExitAfter(panicPatience, func(err *panics.Error) { failPanic(con, err) })
	ctx, stop := withSignals(context.Background(), con)
	process.LimitGarbage(ctx)
	code := run(ctx, os.Args, os.Stdout, con)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code. Results go to
// stdout, everything else to con.
func run(ctx context.Context, args []string, stdout io.Writer, con *terminal.Console) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = failPanic(con, panics.New("the command", v))
		}
	}()
	leaveLinks()
	out := terminal.NewResults(stdout)
	app := newApp(out, con)
	if len(args) > 1 && args[1] == cliargs.CompleteCommand {
		cliargs.Complete(out, app, args[2:], completions)
		return exitDone
	}
	args, err := cliargs.Permute(app, args)
	if bad := kernel.CheckEnvironment(); bad != nil {
		err = &cliargs.Error{Reason: bad.Error()}
	}
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		err = out.Err()
	}
	if err == nil {
		return exitDone
	}
	kind := errkind.Of(ctx, err)
	con.Fail(kind.ExitCode(), explain(kind, err))
	return kind.ExitCode()
}

// failPanic reports a panic that ends the process, and returns the exit code.
func failPanic(con *terminal.Console, err *panics.Error) int {
	con.Fail(errkind.Internal.ExitCode(), explain(errkind.Internal, err))
	return errkind.Internal.ExitCode()
}

func newApp(stdout io.Writer, con *terminal.Console) *cli.App {
	app := &cli.App{
		Name:      "aibox",
		Usage:     "train click-through-rate models with huge embedding tables on one machine",
		UsageText: "aibox COMMAND [options] [arguments]",
		Description: `A first look:

  aibox config init --model dlrm --format criteo > job.yaml
  aibox config check job.yaml
  aibox train job.yaml
  aibox eval --model-dir model --data 'test/*.tsv.gz'

` + "`aibox help COMMAND`" + ` explains a command, with examples. Results go to standard
output, the log and progress to standard error.

Exit codes:

` + exitCodes(),
		HideVersion:     true,
		HideHelpCommand: true,
		// A value such as [a.tsv,b.tsv] is one value.
		DisableSliceFlagSeparator: true,
		Writer:                    stdout,
		ErrWriter:                 con,
		Flags:                     append(cmdline.LogFlags(), cli.HelpFlag, &cli.BoolFlag{Name: "version", DisableDefaultText: true, Usage: "print the version"}),
		// Errors are printed once, by run.
		ExitErrHandler: func(*cli.Context, error) {},
		Before:         cmdline.CheckLogFlags,
		OnUsageError:   cliargs.OnUsageError,
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return printVersion(c)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			trainCommand(), tuneCommand(), evalCommand(), predictCommand(),
			generateCommand(), convertCommand(),
			configCommand(), inspectCommand(), generationsCommand(), rollbackCommand(), diffCommand(),
			publishCommand(), restoreCommand(), tablecmd.Command(version),
			completionCommand(), versionCommand(),
			// cliargs.Permute turns it into --help.
			{Name: "help", Usage: "explain a command", ArgsUsage: "COMMAND", Action: func(c *cli.Context) error { return cli.ShowAppHelp(c) }},
		},
	}
	for _, c := range app.Commands {
		finishCommand(c)
	}
	return app
}

// finishCommand gives c and its subcommands what all commands share.
func finishCommand(c *cli.Command) {
	c.Before = func(c *cli.Context) error { return cmp.Or(cmdline.CheckLogFlags(c), cliargs.NoEmptyTexts(c)) }
	c.OnUsageError = cliargs.OnUsageError
	c.HideHelpCommand = true
	c.Flags = append(c.Flags, cmdline.LogFlags()...)
	if c.ArgsUsage == "" {
		c.ArgsUsage = " " // if it were empty, the help would mention arguments
	}
	for _, s := range c.Subcommands {
		finishCommand(s)
	}
}
