package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves the flags of a command line in front of its arguments, so that
// `aibox train job.yaml --date 2026-11-20` works: the flag parser stops at the
// first argument. What follows "--" stays as it is.
func permute(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	out := args[:1:1]
	rest := args[1:]
	flags, commands := app.Flags, app.Commands
	for {
		// Everything up to the next command name.
		var front, arguments []string
		i := 0
		var next *cli.Command
		for ; i < len(rest); i++ {
			a := rest[i]
			if a == "--" {
				break
			}
			if len(a) > 1 && a[0] == '-' {
				front = append(front, a)
				if takesValue(flags, a) && i+1 < len(rest) {
					i++
					front = append(front, rest[i])
				}
				continue
			}
			if next = find(commands, a); next != nil && len(arguments) == 0 {
				break
			}
			next = nil
			arguments = append(arguments, a)
		}
		out = append(out, front...)
		if next == nil {
			return append(append(out, arguments...), rest[i:]...)
		}
		out = append(out, rest[i])
		rest = rest[i+1:]
		flags, commands = next.Flags, next.Subcommands
	}
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue says whether the flag that arg names is followed by its value.
// A flag that nobody knows is taken to stand alone; the parser complains later.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue()
		}
	}
	return false
}
