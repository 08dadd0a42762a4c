package jobdate

import (
	"slices"
	"strings"
	"time"
)

// Text is a text whose environment variables are expanded and whose dates are not.
type Text []part

// part is a piece of a text: a date, or what is between two dates.
type part struct {
	text string
	date bool // text is what was between the braces
}

// Split splits a text in which Expand finds nothing wrong. The result is nil if there is no
// date in it.
func Split(s string, env Environment) Text {
	var parts Text
	dates := 0
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		if text != "" {
			parts = append(parts, part{text: Expand(text, time.Time{}, env).Text})
		}
		if !found {
			break
		}
		body, after, _ := strings.Cut(after, "}}")
		parts = append(parts, part{text: body, date: true})
		rest, dates = after, dates+1
	}
	if dates == 0 {
		return nil
	}
	return parts
}

// At is the text at a date.
func (t Text) At(date time.Time) string {
	var out strings.Builder
	for _, p := range t {
		text := p.text
		if p.date {
			text, _ = expandDate(p.text, date)
		}
		out.WriteString(text)
	}
	return out.String()
}

// ChangesWithin reports whether the text is not the same at all hours of a day.
func (t Text) ChangesWithin(day time.Time) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.date && changesWithin(p.text, day) })
}
