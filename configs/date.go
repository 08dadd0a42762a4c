package configs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"aibox/configs/internal/jobdate"
	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// setDate finds the job's date, in the time zone that the file or an override
// names. It comes before decoding, because templates need the date.
func (l *loader) setDate(root *yamltree.Node) {
	name, warning := jobdate.SystemZone(l.opts.Env)
	if root != nil && root.Kind == yamltree.Mapping {
		i := slices.IndexFunc(root.Entries, func(e yamltree.Entry) bool { return e.Key == "timezone" })
		if i >= 0 && root.Entries[i].Value.Kind == yamltree.Scalar && !root.Entries[i].Value.IsNull() {
			name, warning = root.Entries[i].Value.Text, ""
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC // checkTimezone reports it
	}
	l.job.zone = name
	if warning != "" {
		l.job.warnings = append(l.job.warnings, warning)
	}
	if l.opts.Date == "" {
		now := l.opts.Now().In(zone)
		l.job.Date = jobdate.OnClock(now, zone)
		return
	}
	date, err := jobdate.Parse(l.opts.Date, zone)
	if err != nil {
		l.Fault(yamltree.Place{Set: "--date", Order: commandLine}, "", "%s", err.Error())
	}
	l.job.Date, l.job.DateGiven, l.job.Dated = date, true, true
	l.job.hourly = len(l.opts.Date) > len(jobdate.Day)
}

func (l *loader) checkTimezone() {
	if z := l.job.Timezone; l.Sound("timezone") && !jobdate.Known(z) {
		l.FaultAt("timezone", "%s is not a time zone: write a name such as UTC, Asia/Shanghai or Europe/Berlin", nearest.Quote(z))
	}
}

// DateText is the job's date with its time zone, for logs and messages.
func (j *Job) DateText() string {
	return fmt.Sprintf("%s (%s)", j.Date.Format(jobdate.Day), j.Timezone)
}

// expand replaces the templates in a scalar and reports those that are wrong.
func (l *loader) expand(path string, n *yamltree.Node) (string, bool) {
	x := jobdate.Expand(n.Text, l.job.Date, l.opts.Env)
	l.job.Dated = l.job.Dated || x.Dated
	l.job.hourly = l.job.hourly || x.Hourly
	for _, f := range x.Faults {
		at := n.Place
		if at.Set == "" && !strings.Contains(n.Text, "\n") {
			at.Column += f.Offset
			if n.Quoted {
				at.Column++
			}
		}
		l.Fault(at, path, "%s", f.Message)
	}
	return x.Text, x.Faults == nil
}

// expandKey replaces the templates in the text of a key, and resolves ".." after a symbolic link
// relative to the link's target.
func (l *loader) expandKey(path string, n *yamltree.Node) (string, bool) {
	text, ok := l.expand(path, n)
	switch {
	case !ok:
		return "", false
	case path == "name":
		l.job.plainName = n.Text
		return text, true
	case path == "output.model_dir":
		l.job.modelDir = jobdate.Split(n.Text, l.opts.Env)
	}
	return followUpward(text), true
}

// Dated returns a job that has nothing but a date and its time zone. It is for
// commands without a job file, whose arguments may hold templates, too. Of opts.Set
// it uses only timezone.
func Dated(opts LoadOptions) (*Job, error) { return dated(opts, "timezone=") }

// DatedWithHDFS is Dated for commands that reach HDFS: of opts.Set it also uses the keys of
// data.hdfs. If there are none, data.hdfs is zero, and else it has all of its defaults.
func DatedWithHDFS(opts LoadOptions) (*Job, error) { return dated(opts, "timezone=", HDFSKeys) }

// HDFSKeys is what the keys of data.hdfs begin with.
const HDFSKeys = "data.hdfs."

// dated is Dated with the overrides that begin like one of used.
func dated(opts LoadOptions, used ...string) (*Job, error) {
	l := newLoader(&Job{}, opts)
	set := slices.DeleteFunc(slices.Clone(opts.Set), func(set string) bool {
		return !slices.ContainsFunc(used, func(begin string) bool { return strings.HasPrefix(strings.TrimSpace(set), begin) })
	})
	root, faults := yamltree.Set(nil, set)
	l.Faults = append(l.Faults, faults...)
	l.setDate(root)
	if root != nil {
		l.Decode(root)
		if _, given := l.Given["data.hdfs"]; given {
			l.CompleteBelow("data.hdfs", &l.job.Data.HDFS)
			l.checkHDFS()
		}
	}
	if l.job.Timezone == "" {
		l.job.Timezone = l.job.zone
	}
	l.checkTimezone()
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.job, nil
}

// Expand replaces the templates in a command-line argument as in the job file: {{date}} becomes the
// job's date. ".." after a symbolic link is resolved relative to the link's target. where names the
// argument in errors, which are FaultsErrors.
func (j *Job) Expand(where, text string) (string, error) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "${") {
		return followUpward(text), nil // a $NAME or ~ is left alone here: expanding it is the shell's work
	}
	dated := *j // a copy, because expanding a date sets Dated
	l := newLoader(&dated, LoadOptions{})
	expanded, ok := l.expand("", &yamltree.Node{Place: yamltree.Place{Set: where}, Kind: yamltree.Scalar, Text: text, Quoted: true})
	if !ok {
		return "", l.err()
	}
	return followUpward(expanded), nil
}
