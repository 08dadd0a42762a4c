package cliargs

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// OneArgument returns the command's only argument. what names it in errors.
func OneArgument(c *cli.Context, what string) (string, error) {
	switch {
	case c.NArg() == 0:
		return "", Errorf("%s: name %s; see `%[1]s --help`", CommandPath(c), what)
	case c.NArg() > 1:
		return "", Errorf("%s: want one argument, %s, but there are %d: %s", CommandPath(c), what, c.NArg(), strings.Join(c.Args().Slice(), " "))
	}
	return c.Args().First(), nil
}

// NoArguments fails if arguments were given to a command that takes none.
func NoArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return Errorf("%s: unexpected argument %q: it takes flags alone; see `%[1]s --help`", CommandPath(c), c.Args().First())
	}
	return nil
}

// NeedFlags fails if one of the named flags was not given.
func NeedFlags(c *cli.Context, names ...string) error {
	var missing []string
	for _, name := range names {
		if !c.IsSet(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		last := len(missing) - 1
		text := missing[last] + " is missing"
		if last > 0 {
			text = strings.Join(missing[:last], ", ") + " and " + missing[last] + " are missing"
		}
		return Errorf("%s: %s; see `%[1]s --help`", CommandPath(c), text)
	}
	return nil
}

// NoEmptyTexts fails if a flag of the command was given an empty text, as by --date "$DAY" in a
// script where DAY is not set, or if an argument is empty. Without that, the command would do what
// it does without the flag.
func NoEmptyTexts(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		name, empty := f.Names()[0], false
		switch f.(type) {
		case *cli.StringFlag:
			empty = c.String(name) == ""
		case *cli.StringSliceFlag:
			empty = slices.Contains(c.StringSlice(name), "")
		}
		if empty && c.IsSet(name) {
			return Errorf("%s: --%s is empty; give it a value, or leave it out", CommandPath(c), name)
		}
	}
	if len(c.Command.Subcommands) == 0 && slices.Contains(c.Args().Slice(), "") {
		return Errorf("%s: an argument is empty; see `%[1]s --help`", CommandPath(c))
	}
	return nil
}

// OneOf fails if the named flag has a value that is not in values.
func OneOf(c *cli.Context, name string, values []string) error {
	if v := c.String(name); !slices.Contains(values, v) {
		return Errorf("%s: --%s %s: want one of %s.%s", CommandPath(c), name, v, strings.Join(values, ", "), DidYouMean("", v, values))
	}
	return nil
}

// CommandPath returns the names of the command and its parents, such as `aibox config
// check`.
func CommandPath(c *cli.Context) string {
	if c.Command == nil || c.Command.HelpName == "" {
		return "aibox"
	}
	return c.Command.HelpName
}
