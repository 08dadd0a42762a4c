package jobdate

import (
	"testing"
	"time"
)

// TestMidnightThatDoesNotExist: in some time zones clocks are put forward at midnight. A
// date is that date, and the day before it that day, all the same.
func TestMidnightThatDoesNotExist(t *testing.T) {
	for _, name := range []string{"America/Havana", "America/Santiago", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Europe/Berlin"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for day := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2027; day = day.AddDate(0, 0, 1) {
			date, err := Parse(day.Format(Day), zone)
			if err != nil {
				t.Fatal(err)
			}
			for template, days := range map[string]int{"date": 0, "date -1d": -1, "date +1d": 1, "date -1w": -7} {
				if got, message := expandDate(template, date); got != day.AddDate(0, 0, days).Format(Day) {
					t.Errorf("%s: {{%s}} of %s is %s %s", name, template, day.Format(Day), got, message)
				}
			}
			if at := OnClock(day.Add(13*time.Hour+30*time.Minute), zone); at.Format(Day+"T15") != day.Format(Day)+"T13" {
				t.Errorf("%s: 13 h of %s is %v", name, day.Format(Day), at)
			}
		}
	}
	// An hour that clocks leave out is the moment at which they are put forward.
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	date, err := Parse("2026-03-29T02", berlin)
	if got, _ := expandDate(`date -1h "2006-01-02T15"`, date); err != nil || date.Hour() != 3 || got != "2026-03-29T01" {
		t.Errorf("%v, an hour before %s, %v", date, got, err)
	}
}

// TestSystemZone: without TZ, and where that names the system's file, the system's zone is one that
// can be loaded.
func TestSystemZone(t *testing.T) {
	zone, _ := SystemZone(func(string) (string, bool) { return "", false })
	for _, text := range []string{":/etc/localtime", "/etc/localtime"} {
		if got, warning := SystemZone(func(string) (string, bool) { return text, true }); got != zone || warning != "" {
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

// TestTextIsExpanded: a text whose dates were left open is at each date what Expand makes of it, and changes
// within a day where that says so.
func TestTextIsExpanded(t *testing.T) {
	env := func(name string) (string, bool) {
		return map[string]string{"ROOT": "/r"}[name], name == "ROOT"
	}
	for text, hourly := range map[string]bool{
		"a/{{date}}": false, "{{date -1d}}{{date \"20060102\"}}": false, "${ROOT}/{{date \"15\"}}/${NO:-x}~/y": true, "{{date -1h}}/b": true,
	} {
		split := Split(text, env)
		for _, day := range []string{"2026-11-20", "2026-03-01T05", "1999-12-31"} {
			date, err := Parse(day, time.UTC)
			x := Expand(text, date, env)
			if err != nil || x.Faults != nil || !x.Dated || x.Hourly != hourly || split.ChangesWithin(date) != hourly || split.At(date) != x.Text {
				t.Errorf("%s at %s: %s and %+v, %v", text, day, split.At(date), x, err)
			}
		}
	}
	if Split("${ROOT}/a", env) != nil {
		t.Error("there is a date in a text without one")
	}
	for text, offset := range map[string]int{"a{{dat}}": 1, "~/a": 0, "ab$ROOT": 2, "abc${x": 3, "{{date}} {{date": 9, "${NO}": 0} {
		if x := Expand(text, time.Time{}, env); len(x.Faults) != 1 || x.Faults[0].Offset != offset {
			t.Errorf("%s: %+v, want a fault at %d", text, x, offset)
		}
	}
}
