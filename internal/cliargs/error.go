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

// ErrorKind sorts the error for exit codes and reports.
func (*Error) ErrorKind() errkind.Kind { return errkind.Usage }

func Errorf(format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...)}
}

// badValue is how the flag parser reports a value.
var badValue = regexp.MustCompile(`^invalid value "(.*)" for (?:flag )?-([a-z-]+): `)

// OnUsageError words what the flag parser complains about. permute has found
// flags that do not exist or lack their value.
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
	}
	return Errorf("%s: --%s %s: want %s; see `%[1]s --help`", CommandPath(c), m[2], m[1], want)
}

// DidYouMean is the sentence of a message that names the nearest of names, with
// prefix before it; empty where none is near. A name that is the beginning of
// one other is near too.
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
