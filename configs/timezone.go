package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a container image may have no time zones of its own

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// localZone is what the system's time zone is called if its name is not known:
// /etc/localtime may be a file without a name that says which zone it is.
const localZone = "Local"

// systemZone is the name of the system's time zone. Where the environment names one that
// is not known, as by a rule such as CST-8, which libc understands, warning says so.
func systemZone(env func(string) (string, bool)) (name, warning string) {
	const localtime = "/etc/localtime"
	if given, set := env("TZ"); set && strings.TrimPrefix(given, ":") != localtime {
		name = strings.TrimPrefix(given, ":")
		if i := strings.LastIndex(name, "/zoneinfo/"); i >= 0 {
			name = name[i+len("/zoneinfo/"):]
		}
		switch {
		case name == "": // as the Go runtime and libc take it
			return "UTC", ""
		case !knownZone(name): // as the Go runtime takes it
			return "UTC", fmt.Sprintf("the environment variable TZ is %s, which is not the name of a time zone, so the job's date is that of UTC: "+
				"set timezone in the job file, or TZ, to a name such as Asia/Shanghai", nearest.Quote(given))
		}
		return name, ""
	}
	file, err := filepath.EvalSymlinks(localtime)
	if err != nil {
		return "UTC", ""
	}
	if _, name, found := strings.Cut(file, "/zoneinfo/"); found && knownZone(name) {
		return name, ""
	}
	if name, err := os.ReadFile("/etc/timezone"); err == nil && knownZone(strings.TrimSpace(string(name))) {
		return strings.TrimSpace(string(name)), ""
	}
	return localZone, ""
}

func knownZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != ""
}

// setDate finds the job's date, in the time zone that the file or an override
// names. It comes before decoding, because templates need the date.
func (l *loader) setDate(root *yamltree.Node) {
	name, warning := systemZone(l.opts.Env)
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
		l.job.Date = onClock(now, zone)
		return
	}
	date, err := parseDate(l.opts.Date, zone)
	if err != nil {
		l.fault(yamltree.Place{Set: "--date", Order: commandLine}, "", "%s", err.Error())
	}
	l.job.Date, l.job.DateGiven, l.job.Dated = date, true, true
	l.job.hourly = len(l.opts.Date) > len(dateLayout)
}

// onClock returns when the clocks of a zone show the date and hour of t. Where clocks are
// put forward over that hour, which is midnight in Havana and in Santiago, it is the
// moment at which they are; package time may then return an hour of the day before.
func onClock(t time.Time, zone *time.Location) time.Time {
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
	at := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, zone)
	shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	before, after := at.ZoneBounds()
	switch {
	case shown.Before(wall):
		return after
	case shown.After(wall):
		return before
	}
	return at
}

// addDays returns the same hour of a day that is so many days later.
func addDays(t time.Time, days int) time.Time {
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
	return onClock(wall.AddDate(0, 0, days), t.Location())
}

func (l *loader) checkTimezone() {
	if z := l.job.Timezone; l.sound("timezone") && !knownZone(z) {
		l.faultAt("timezone", "%s is not a time zone: write a name such as UTC, Asia/Shanghai or Europe/Berlin", nearest.Quote(z))
	}
}

// DateText is the job's date with its time zone, for logs and messages.
func (j *Job) DateText() string {
	return fmt.Sprintf("%s (%s)", j.Date.Format(dateLayout), j.Timezone)
}
