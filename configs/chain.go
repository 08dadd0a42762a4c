package configs

import (
	"iter"
	"slices"
	"strings"
	"time"

	"aibox/configs/internal/yamltree"
)

// WarmStartLatest as training.warm_start stands for the newest model of the chain that
// the job belongs to. The chain consists of the directories that output.model_dir names
// at the job's date and at earlier ones; without a date in it, of that directory alone.
const WarmStartLatest = "latest"

// datedText is a text whose environment variables are expanded and whose dates are not.
type datedText []datedPart

// datedPart is a piece of a text: a date, or what is between two dates.
type datedPart struct {
	text string
	date bool // text is what was between the braces
}

// datedTextOf splits a text that expand has accepted. The result is nil if there is no
// date in it.
func (l *loader) datedTextOf(n *yamltree.Node) datedText {
	var parts datedText
	dates := 0
	for rest := n.Text; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		if text != "" {
			between := *n
			between.Text = text
			expanded, _ := l.expand("", &between)
			parts = append(parts, datedPart{text: expanded})
		}
		if !found {
			break
		}
		body, after, _ := strings.Cut(after, "}}")
		parts = append(parts, datedPart{text: body, date: true})
		rest, dates = after, dates+1
	}
	if dates == 0 {
		return nil
	}
	return parts
}

func (t datedText) at(date time.Time) string {
	var out strings.Builder
	for _, p := range t {
		text := p.text
		if p.date {
			text, _ = expandDate(p.text, date)
		}
		out.WriteString(text)
	}
	return followUpward(out.String())
}

// changesWithin reports whether the text is not the same at all hours of a day.
func (t datedText) changesWithin(day time.Time) bool {
	return slices.ContainsFunc(t, func(p datedPart) bool { return p.date && changesWithin(p.text, day) })
}

// changesWithin reports whether a date that is written so is not the same at all hours of
// a day, because its layout has an hour or its offset is in hours.
func changesWithin(body string, day time.Time) bool {
	first, _ := expandDate(body, day)
	for hour := range 24 {
		at := time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, time.UTC)
		if text, _ := expandDate(body, onClock(at, day.Location())); text != first {
			return true
		}
	}
	return false
}

// Night names the date of a job that has one, so that jobs of the same night have equal
// names and earlier nights come first in the order of texts: 2026-11-20, or 2026-11-20T06
// where the job is not the same at all hours of the day. It is "" without a date.
func (j *Job) Night() string {
	if !j.Dated {
		return ""
	}
	return j.nightOf(j.Date)
}

func (j *Job) nightOf(date time.Time) string {
	if j.hourly {
		return date.Format(hourLayout)
	}
	return date.Format(dateLayout)
}

// ModelDirHasDate reports whether output.model_dir has a date in it, so that other dates
// have other model directories.
func (j *Job) ModelDirHasDate() bool { return j.modelDir != nil }

// EarlierModelDirs yields the directories other than output.model_dir that it names at
// earlier dates, back to 1970, each with the latest night at which it does. The latest
// night comes first. The directories need not exist.
func (j *Job) EarlierModelDirs() iter.Seq2[string, string] {
	return func(yield func(dir, night string) bool) {
		if j.modelDir == nil {
			return
		}
		step := func(t time.Time) time.Time { return addDays(t, -1) }
		if j.modelDir.changesWithin(j.Date) {
			step = func(t time.Time) time.Time { return t.Add(-time.Hour) }
		}
		last := ""
		for date := step(j.Date); date.Year() >= 1970; date = step(date) {
			dir := j.modelDir.at(date)
			if dir == last || dir == j.Output.ModelDir {
				continue
			}
			last = dir
			if !yield(dir, j.nightOf(date)) {
				return
			}
		}
	}
}
