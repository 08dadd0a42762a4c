package cliargs

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/internal/errkind"
	"aibox/internal/nearest"
)

// Error is a mistake on the command line.
type Error struct{ Reason string }

func (e *Error) Error() string { return e.Reason }

// ErrorKind implements the method by which package errkind finds the kind.
func (*Error) ErrorKind() errkind.Kind { return errkind.Usage }

// Errorf returns an Error with a formatted reason.
func Errorf(format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...)}
}

// badValue matches how the flag parser reports a value that it cannot parse.
var badValue = regexp.MustCompile(`^invalid value "(.*)" for (?:flag )?-([a-z-]+): `)

// OnUsageError rewords an error of the flag parser. Flags that do not exist or lack
// their value are not among them: Permute has reported those.
func OnUsageError(c *cli.Context, err error, _ bool) error {
	m := badValue.FindStringSubmatch(strings.Replace(err.Error(), "invalid boolean value", "invalid value", 1))
	if m == nil || c.Command == nil {
		return Errorf("%s: %v; see `%[1]s --help`", CommandPath(c), err)
	}
	want := "another value"
	switch findFlag(c.Command.Flags, m[2]).(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		want = "a whole number, in digits"
	case *cli.Uint64Flag:
		want = "a whole number of 0 or more, in digits"
	case *cli.Float64Flag:
		want = "a number"
	case *cli.BoolFlag:
		want = "true or false, or no value"
	case *cli.DurationFlag:
		want = "a duration, such as 90m or 1h30m"
	}
	return Errorf("%s: --%s %s: want %s; see `%[1]s --help`", CommandPath(c), m[2], m[1], want)
}

// DidYouMean returns a sentence for a message that suggests the nearest of names, with
// prefix before it, or "" if none is near. If name is the beginning of exactly one of
// names, that one is near, too.
func DidYouMean(prefix, name string, names []string) string {
	near := nearest.Name(name, names)
	if near == "" {
		var longer []string
		for _, n := range names {
			if name != "" && strings.HasPrefix(n, name) {
				longer = append(longer, n)
			}
		}
		if len(longer) != 1 {
			return ""
		}
		near = longer[0]
	}
	return " Did you mean " + prefix + near + "?"
}
