package configs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"aibox/internal/nearest"
)

// TestTimezone: at 19:30 UTC it is tomorrow in China, today in the west, and half
// past in India.
func TestTimezone(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 20, 19, 30, 0, 0, time.UTC) }
	dir := `output.model_dir="m/{{date}}/{{date -1d}}/{{date \"2006010215\"}}/{{date -20h}}"`
	for _, c := range []struct{ system, key, want, zone string }{
		{"", "UTC", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"", "Asia/Shanghai", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
		{"Asia/Shanghai", "", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
		{":/usr/share/zoneinfo/Asia/Kolkata", "", "m/2026-11-21/2026-11-20/2026112101/2026-11-20", "Asia/Kolkata"},
		{"Asia/Shanghai", "America/Los_Angeles", "m/2026-11-20/2026-11-19/2026112011/2026-11-19", "America/Los_Angeles"},
		{"Nowhere/AtAll", "", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"CST-8", "", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"CST-8", "Asia/Shanghai", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
	} {
		sets := []string{dir}
		if c.key != "" {
			sets = append(sets, "timezone="+c.key)
		}
		env := func(name string) (string, bool) { return c.system, name == "TZ" }
		j, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Now: now, Set: sets, Env: env})
		if err != nil {
			t.Fatal(err)
		}
		if j.Output.ModelDir != c.want || j.Timezone != c.zone || j.Date.Location().String() != c.zone || !j.Dated {
			t.Errorf("%+v: %s in %s", c, j.Output.ModelDir, j.Timezone)
		}
		unknown := c.key == "" && (c.system == "CST-8" || c.system == "Nowhere/AtAll")
		if text := strings.Join(j.Warnings(), "\n"); unknown != strings.Contains(text, "TZ is "+nearest.Quote(c.system)+", which is not the name of a time zone") || !unknown && text != "" {
			t.Errorf("%+v: warnings %q", c, text)
		}
		var shown bytes.Buffer
		if err := j.Show(&shown); err != nil {
			t.Fatal(err)
		}
		if want := "The date is " + c.want[2:12] + " (" + c.zone + ")"; !strings.Contains(shown.String(), want) || !strings.Contains(shown.String(), "\ntimezone: "+c.zone) {
			t.Errorf("%+v: config show prints %s", c, shown.String())
		}
	}
	// A given date is that date in every zone.
	j := mustParse(t, smallJob, "timezone=Pacific/Kiritimati", dir)
	if j.Output.ModelDir != "m/2026-11-20/2026-11-19/2026112000/2026-11-19" {
		t.Error(j.Output.ModelDir)
	}
	for _, zone := range []string{"CEST+2", "Asia/Shangai", `""`, "[UTC]"} {
		if _, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Set: []string{"timezone=" + zone}, Env: noEnv}); err == nil || !strings.Contains(err.Error(), "timezone") {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

// TestMidnightThatDoesNotExist: in some time zones clocks are put forward at midnight. A
// date is that date, and the day before it that day, all the same.
func TestMidnightThatDoesNotExist(t *testing.T) {
	for _, name := range []string{"America/Havana", "America/Santiago", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Europe/Berlin"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for day := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2027; day = day.AddDate(0, 0, 1) {
			date, err := parseDate(day.Format(dateLayout), zone)
			if err != nil {
				t.Fatal(err)
			}
			for template, days := range map[string]int{"date": 0, "date -1d": -1, "date +1d": 1, "date -1w": -7} {
				if got, message := expandDate(template, date); got != day.AddDate(0, 0, days).Format(dateLayout) {
					t.Errorf("%s: {{%s}} of %s is %s %s", name, template, day.Format(dateLayout), got, message)
				}
			}
			if at := onClock(day.Add(13*time.Hour+30*time.Minute), zone); at.Format(dateLayout+"T15") != day.Format(dateLayout)+"T13" {
				t.Errorf("%s: 13 h of %s is %v", name, day.Format(dateLayout), at)
			}
		}
	}
	// An hour that clocks leave out is the moment at which they are put forward.
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	date, err := parseDate("2026-03-29T02", berlin)
	if got, _ := expandDate(`date -1h "2006-01-02T15"`, date); err != nil || date.Hour() != 3 || got != "2026-03-29T01" {
		t.Errorf("%v, an hour before %s, %v", date, got, err)
	}
}

// TestSystemZone: without TZ, and where that names the system's file, the system's zone is one that can be loaded.
func TestSystemZone(t *testing.T) {
	zone, _ := systemZone(noEnv)
	for _, text := range []string{":/etc/localtime", "/etc/localtime"} {
		if got, warning := systemZone(func(string) (string, bool) { return text, true }); got != zone || warning != "" {
			t.Errorf("TZ=%s: %s, want %s; %s", text, got, zone, warning)
		}
	}
	loaded, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(zone, err)
	}
	now := time.Now()
	if _, want := now.Zone(); zone != "UTC" {
		if _, got := now.In(loaded).Zone(); got != want {
			t.Errorf("%s is %d s from UTC, the system %d", zone, got, want)
		}
	}
}

func TestExpandArguments(t *testing.T) {
	job, err := Dated(LoadOptions{Date: "2026-11-20", Set: []string{"data.format=csv", "timezone=Asia/Tokyo"}})
	if err != nil || job.Timezone != "Asia/Tokyo" {
		t.Fatal(job, err)
	}
	t.Setenv("PART", "x")
	for text, want := range map[string]string{
		"logs/{{date -1d}}/*.gz": "logs/2026-11-19/*.gz", "${PART}/{{date \"20060102\"}}": "x/20261120", "~/a $HOME": "~/a $HOME", "": "",
	} {
		if got, err := job.Expand("--data", text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := job.Expand("--data", "{{dat}}"); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
	if job.Dated && !job.DateGiven {
		t.Error("an argument is no part of the job")
	}
	for _, c := range []struct{ date, set, want string }{
		{"yesterday", "seed=1", "--date: "},
		{"", "timezone=Here", "--set timezone=Here: timezone: "},
		{"", "timezone=[UTC]", "--set timezone=[UTC]: timezone: "},
		{"", "timezone=", "--set timezone=: timezone: "},
	} {
		if _, err := Dated(LoadOptions{Date: c.date, Set: []string{c.set}}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
