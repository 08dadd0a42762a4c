package configs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"aibox/configs/internal/yamltree"
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

const (
	dateLayout = "2006-01-02"
	hourLayout = "2006-01-02T15"
)

var (
	dateOffset = regexp.MustCompile(`^([+-])([0-9]{1,6})([a-zA-Z]+)$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	bareEnv    = regexp.MustCompile(`^\$+([A-Za-z_][A-Za-z0-9_]*)`)
	namesEnv   = regexp.MustCompile(`\$[A-Za-z_]`)
)

// expand replaces the templates in a scalar and reports those that are wrong.
func (l *loader) expand(path string, n *yamltree.Node) (string, bool) {
	var out strings.Builder
	ok := true
	fail := func(offset int, format string, args ...any) {
		at := n.Place
		if at.Set == "" && !strings.Contains(n.Text, "\n") {
			at.Column += offset
			if n.Quoted {
				at.Column++
			}
		}
		l.fault(at, path, format, args...)
		ok = false
	}
	s := n.Text
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "{{"):
			end := strings.Index(s[i:], "}}")
			if end < 0 {
				fail(i, "%s is not closed: write {{date}}", nearest.Quote(s[i:]))
				return "", false
			}
			body := s[i+2 : i+end]
			text, message := expandDate(body, l.job.Date)
			l.job.Dated = true
			if message != "" {
				fail(i, "{{%s}}: %s", body, message)
			} else if changesWithin(body, l.job.Date) {
				l.job.hourly = true
			}
			out.WriteString(text)
			i += end + 2
		case strings.HasPrefix(s[i:], "${"):
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				fail(i, "%s is not closed: write ${NAME} or ${NAME:-default}", nearest.Quote(s[i:]))
				return "", false
			}
			text, message := l.expandEnv(s[i+2 : i+end])
			if message != "" {
				fail(i, "%s: %s", s[i:i+end+1], message)
			}
			out.WriteString(text)
			i += end + 1
		case bareEnv.MatchString(s[i:]):
			m := bareEnv.FindStringSubmatch(s[i:])
			fail(i, "%s is not expanded: write ${%s}", m[0], m[1])
			i += len(m[0])
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	if s == "~" || strings.HasPrefix(s, "~/") {
		fail(0, "~ is not expanded: write ${HOME}%s", s[1:])
	}
	// Otherwise the job that config show prints would be another job.
	if r := out.String(); ok && looksLikeTemplate(r) {
		fail(0, "a template expands to %s, which looks like a template itself", nearest.Quote(r))
	}
	return out.String(), ok
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
	layout := dateLayout
	rest = strings.TrimSpace(rest)
	if i := strings.IndexByte(rest, '"'); i >= 0 {
		var ok bool
		if layout, ok = strings.CutSuffix(rest[i+1:], `"`); !ok || layout == "" || strings.Contains(layout, `"`) {
			return "", "the layout comes last, in quotation marks; " + usage
		}
		rest = strings.TrimSpace(rest[:i])
		// A layout that does not change when it is formatted has no part of a date.
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
		date = addDays(date, count)
	case "w":
		date = addDays(date, 7*count)
	case "h":
		date = date.Add(time.Duration(count) * time.Hour)
	default:
		return "", fmt.Sprintf("%s is not a unit; allowed: d (days), w (weeks), h (hours)", nearest.Quote(m[3]))
	}
	return date.Format(layout), ""
}

func (l *loader) expandEnv(body string) (text, message string) {
	name, fallback, hasFallback := strings.Cut(body, ":-")
	if !envName.MatchString(name) {
		return "", "this is not the name of an environment variable; write ${NAME} or ${NAME:-default}"
	}
	value, found := l.opts.Env(name)
	if value != "" || found && !hasFallback {
		return value, ""
	}
	if hasFallback {
		return fallback, ""
	}
	return "", fmt.Sprintf("the environment variable %s is not set; set it, or give a default: ${%s:-…}", name, name)
}

// parseDate reads --date: a day, or a day and an hour.
func parseDate(s string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{dateLayout, hourLayout} {
		if t, err := time.Parse(layout, s); err == nil {
			return onClock(t, zone), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a date: write a day such as 2026-11-20, or with the hour 2026-11-20T06", nearest.Quote(s))
}
