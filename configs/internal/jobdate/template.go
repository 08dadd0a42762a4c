package jobdate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"aibox/internal/nearest"
)

// Templates in paths:
//
//	{{date}}                    the job's date, 2026-11-20
//	{{date -1d}}                the day before; d, w and h, + or -
//	{{date "20060102"}}         in a layout of Go's package time
//	{{date -1d "2006/01/02"}}   both
//	${NAME}                     an environment variable, which must be set
//	${NAME:-default}            or a default where it is unset or empty
//
// $NAME and ~/, which a shell would expand, are not expanded here. They are faults,
// because hardly anybody means a directory of that name.

var (
	dateOffset = regexp.MustCompile(`^([+-])([0-9]{1,6})([a-zA-Z]+)$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	bareEnv    = regexp.MustCompile(`^\$+([A-Za-z_][A-Za-z0-9_]*)`)
	namesEnv   = regexp.MustCompile(`\$[A-Za-z_]`)
)

// Environment looks up a variable, as os.LookupEnv does.
type Environment func(name string) (string, bool)

// Expanded is a text with its templates replaced.
type Expanded struct {
	Text   string
	Dated  bool // there is a date in it
	Hourly bool // it is not the same at all hours of the day
	Faults []Fault
}

// Fault is a template that is wrong, at an offset of the text in bytes.
type Fault struct {
	Offset  int
	Message string
}

func (x *Expanded) fail(offset int, format string, args ...any) {
	x.Faults = append(x.Faults, Fault{offset, fmt.Sprintf(format, args...)})
}

// Expand replaces the templates in a text and reports those that are wrong.
func Expand(s string, date time.Time, env Environment) Expanded {
	var x Expanded
	var out strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "{{"):
			end := strings.Index(s[i:], "}}")
			if end < 0 {
				x.fail(i, "%s is not closed: write {{date}}", nearest.Quote(s[i:]))
				return x
			}
			body := s[i+2 : i+end]
			text, message := expandDate(body, date)
			x.Dated = true
			if message != "" {
				x.fail(i, "{{%s}}: %s", body, message)
			} else if changesWithin(body, date) {
				x.Hourly = true
			}
			out.WriteString(text)
			i += end + 2
		case strings.HasPrefix(s[i:], "${"):
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				x.fail(i, "%s is not closed: write ${NAME} or ${NAME:-default}", nearest.Quote(s[i:]))
				return x
			}
			text, message := expandEnv(s[i+2:i+end], env)
			if message != "" {
				x.fail(i, "%s: %s", s[i:i+end+1], message)
			}
			out.WriteString(text)
			i += end + 1
		case bareEnv.MatchString(s[i:]):
			m := bareEnv.FindStringSubmatch(s[i:])
			x.fail(i, "%s is not expanded: write ${%s}", m[0], m[1])
			i += len(m[0])
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	if s == "~" || strings.HasPrefix(s, "~/") {
		x.fail(0, "~ is not expanded: write ${HOME}%s", s[1:])
	}
	// Otherwise the job that config show prints would be another job.
	x.Text = out.String()
	if x.Faults == nil && looksLikeTemplate(x.Text) {
		x.fail(0, "a template expands to %s, which looks like a template itself", nearest.Quote(x.Text))
	}
	return x
}

// looksLikeTemplate reports whether a text would be expanded, or reported as a
// fault, when it is read from a job file.
func looksLikeTemplate(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "${") || namesEnv.MatchString(s) || strings.HasPrefix(s, "~/")
}

// expandDate evaluates what is between the braces; message says what is wrong.
func expandDate(body string, date time.Time) (text, message string) {
	const usage = `write {{date}}, {{date -1d}}, {{date "20060102"}} or {{date -1d "2006/01/02"}}`
	rest := strings.TrimSpace(body)
	word, rest, _ := strings.Cut(rest, " ")
	if word != "date" {
		if near := nearest.Name(word, []string{"date"}); near != "" {
			return "", fmt.Sprintf("%s is not a template: did you mean %s? %s", nearest.Quote(word), nearest.Quote(near), usage)
		}
		return "", fmt.Sprintf("%s is not a template; %s", nearest.Quote(word), usage)
	}
	layout := Day
	rest = strings.TrimSpace(rest)
	if i := strings.IndexByte(rest, '"'); i >= 0 {
		var ok bool
		if layout, ok = strings.CutSuffix(rest[i+1:], `"`); !ok || layout == "" || strings.Contains(layout, `"`) {
			return "", "the layout comes last, in quotation marks; " + usage
		}
		rest = strings.TrimSpace(rest[:i])
		// A layout that formatting does not change contains no part of a date.
		if probe := time.Date(1999, 12, 31, 23, 58, 57, 0, time.UTC); probe.Format(layout) == layout {
			return "", fmt.Sprintf("layout %s contains no part of a date: write how 2 January 2006, 15 h would look, such as %q", nearest.Quote(layout), "20060102")
		}
	}
	if rest == "" {
		return date.Format(layout), ""
	}
	m := dateOffset.FindStringSubmatch(rest)
	if m == nil {
		return "", fmt.Sprintf("%s is not an offset such as -1d; %s", nearest.Quote(rest), usage)
	}
	count, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		return "", fmt.Sprintf("%s is not an offset such as -1d; %s", nearest.Quote(rest), usage)
	}
	switch m[3] {
	case "d":
		date = AddDays(date, count)
	case "w":
		date = AddDays(date, 7*count)
	case "h":
		date = date.Add(time.Duration(count) * time.Hour)
	default:
		return "", fmt.Sprintf("%s is not a unit; allowed: d (days), w (weeks), h (hours)", nearest.Quote(m[3]))
	}
	return date.Format(layout), ""
}

func expandEnv(body string, env Environment) (text, message string) {
	name, fallback, hasFallback := strings.Cut(body, ":-")
	if !envName.MatchString(name) {
		return "", "this is not the name of an environment variable; write ${NAME} or ${NAME:-default}"
	}
	value, found := env(name)
	if value != "" || found && !hasFallback {
		return value, ""
	}
	if hasFallback {
		return fallback, ""
	}
	return "", fmt.Sprintf("the environment variable %s is not set; set it, or give a default: ${%s:-…}", name, name)
}

// changesWithin reports whether a date template differs between hours of a day, because its layout
// has an hour or its offset is in hours.
func changesWithin(body string, day time.Time) bool {
	first, _ := expandDate(body, day)
	for hour := range 24 {
		at := time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, time.UTC)
		if text, _ := expandDate(body, OnClock(at, day.Location())); text != first {
			return true
		}
	}
	return false
}
