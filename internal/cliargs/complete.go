package cliargs

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// CompleteCommand is what the completion scripts call:
//
//	aibox __complete WORD... CURRENT
//
// with the words of the command line after aibox, the last one as far as it is
// typed. It prints the candidates for that word, a name, a tab and a description
// a line; nothing means a file name.
const CompleteCommand = "__complete"

// Complete prints the candidates for the last of words. values are those that a
// flag, or the arguments of a command, may have; none: any.
func Complete(out io.Writer, app *cli.App, words []string, values func(name string) []string) {
	if len(words) == 0 {
		return
	}
	// bash cuts words at "=": --model dlrm and --model = dlrm are the same.
	current := words[len(words)-1]
	words = slices.DeleteFunc(slices.Clone(words[:len(words)-1]), func(w string) bool { return w == "=" })
	if current == "=" {
		current = ""
	}
	flags, commands := app.Flags, app.Commands
	for i := 0; i < len(words); i++ {
		w := words[i]
		if len(w) > 1 && w[0] == '-' {
			f := findFlag(flags, strings.TrimLeft(w, "-"))
			if f == nil || !takesValue(f) {
				continue
			}
			if i++; i == len(words) { // its value is being typed
				candidates(out, current, values(f.Names()[0]))
				return
			}
			continue
		}
		c := findCommand(commands, w)
		switch {
		case c == nil:
			commands = nil // an argument, or a slip
		case c.Name == "help":
		default:
			flags, commands = c.Flags, c.Subcommands
			for _, value := range values(c.Name) {
				commands = append(slices.Clip(commands), &cli.Command{Name: value})
			}
		}
	}
	var lines []string
	if strings.HasPrefix(current, "-") {
		if findFlag(flags, "help") == nil { // the app's own has it
			flags = append(slices.Clip(flags), cli.HelpFlag)
		}
		for _, f := range flags {
			usage := ""
			if d, ok := f.(cli.DocGenerationFlag); ok {
				usage = d.GetUsage()
			}
			lines = append(lines, "--"+f.Names()[0]+"\t"+usage)
		}
	} else {
		for _, c := range commands {
			lines = append(lines, c.Name+"\t"+c.Usage)
		}
	}
	candidates(out, current, lines)
}

// candidates prints the lines that begin with what is typed.
func candidates(out io.Writer, current string, lines []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, current) {
			fmt.Fprintln(out, strings.ReplaceAll(line, "`", "")) // a failure is noted by Results
		}
	}
}
