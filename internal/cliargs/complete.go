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
// with the words of the command line after aibox, of which the last may be incomplete.
// It prints the candidates for that word, one per line: a name, a tab and a
// description. If it prints nothing, the shell completes file names.
const CompleteCommand = "__complete"

// Complete prints the candidates for the last of words. values returns the values that
// a flag, or an argument of a command, may have; none means any.
func Complete(out io.Writer, app *cli.App, words []string, values func(name string) []string) {
	if len(words) == 0 {
		return
	}
	// bash splits words at "=": --model=dlrm arrives as --model = dlrm.
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
			commands = nil // this is an argument, or a misspelt command
		case c.Name == "help":
		default:
			flags, commands = c.Flags, c.Subcommands
			for _, value := range values(c.Name) {
				commands = append(slices.Clip(commands), &cli.Command{Name: value})
			}
		}
	}
	if flag, _, found := strings.Cut(current, "="); found && strings.HasPrefix(flag, "-") { // zsh and fish do not split words there
		if f := findFlag(flags, strings.TrimLeft(flag, "-")); f != nil {
			for _, value := range values(f.Names()[0]) {
				candidates(out, current, []string{flag + "=" + value})
			}
		}
		return
	}
	var lines []string
	if strings.HasPrefix(current, "-") {
		if findFlag(flags, "help") == nil { // the flags of the app have it already
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

// candidates prints the lines that begin with the incomplete word.
func candidates(out io.Writer, current string, lines []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, current) {
			fmt.Fprintln(out, strings.ReplaceAll(line, "`", "")) // a failure is noted by Results
		}
	}
}
