package cliargs

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Permute puts flags before arguments, because the flag parser stops at the first argument and
// users write `aibox train job.yaml --date 2026-11-20`. Words after "--" stay in place. `help
// COMMAND` becomes `COMMAND --help`, and any other words beside --help are dropped, because the
// parser would take an argument for a topic. Unknown flags and commands, and flags without their
// value, are reported here, with the nearest name.
func Permute(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	out := args[:1:1]
	rest := args[1:]
	w := words{path: app.Name, flags: app.Flags, commands: app.Commands}
	help := false
	for {
		next, err := w.read(rest)
		if err != nil {
			return nil, err
		}
		out = append(out, w.flagged...)
		help = help || w.help
		if next == nil {
			break
		}
		out = append(out, next.Name)
		rest = w.rest
		w = words{path: w.path + " " + next.Name, flags: next.Flags, commands: next.Subcommands}
	}
	if help {
		return append(out, "--help"), nil
	}
	if len(w.rest) > 0 { // the parser takes "--" away before the first argument alone
		out, w.rest = append(out, w.rest[0]), w.rest[1:]
	}
	return append(append(out, w.arguments...), w.rest...), nil
}

// words holds the words of a command line that belong to one command.
type words struct {
	path     string // the command, such as `aibox config check`
	flags    []cli.Flag
	commands []*cli.Command // its subcommands

	flagged   []string // flags with their values
	arguments []string
	rest      []string // after the subcommand, or from "--" on
	help      bool     // the word help came before the subcommand, or --help anywhere
}

// read reads args up to the next subcommand, which it returns, or to the end, where it
// returns nil.
func (w *words) read(args []string) (*cli.Command, error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--" && len(w.commands) > 0: // what follows is a command all the same
		case a == "--":
			w.rest = args[i:]
			return nil, nil
		case len(a) > 1 && a[0] == '-':
			f, err := w.flag(a)
			if err != nil {
				return nil, err
			}
			if f == cli.HelpFlag {
				w.help = true
				continue
			}
			w.flagged = append(w.flagged, a)
			if takesValue(f) && !strings.Contains(a, "=") {
				if i++; i == len(args) {
					return nil, Errorf("%s: %s needs a value; see `%s --help`", w.path, a, w.path)
				}
				w.flagged = append(w.flagged, args[i])
			}
		case len(w.commands) == 0:
			w.arguments = append(w.arguments, a)
		case a == "help" || a == "h":
			w.help = true
		default:
			c := findCommand(w.commands, a)
			if c == nil {
				return nil, Errorf("there is no command `%s %s`.%s See `%s --help`", w.path, a, DidYouMean("", a, commandNames(w.commands)), w.path)
			}
			w.rest = args[i+1:]
			return c, nil
		}
	}
	return nil, nil
}

// flag returns the flag that arg names.
func (w *words) flag(arg string) (cli.Flag, error) {
	given, _, _ := strings.Cut(arg, "=")
	name := strings.TrimLeft(given, "-")
	if name == "help" || name == "h" {
		return cli.HelpFlag, nil
	}
	if f := findFlag(w.flags, name); f != nil {
		return f, nil
	}
	return nil, Errorf("%s: there is no flag %s.%s See `%s --help`", w.path, given, DidYouMean("--", name, flagNames(w.flags)), w.path)
}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

func flagNames(flags []cli.Flag) []string {
	names := []string{cli.HelpFlag.Names()[0]}
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	return names
}
