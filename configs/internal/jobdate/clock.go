package jobdate

import (
	"fmt"
	"time"

	"aibox/internal/nearest"
)

// Layouts of a job's date, as package time has them: of a day, and of a day with its hour.
const (
	Day  = "2006-01-02"
	Hour = "2006-01-02T15"
)

// firstDay is day 1. Day 0 is that of rows that were never seen.
var firstDay = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)

// Parse reads --date: a day, or a day and an hour.
func Parse(s string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{Day, Hour} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.Before(firstDay) {
				return time.Time{}, fmt.Errorf("%s is too early: the first day that a job can have is %s", nearest.Quote(s), firstDay.Format(Day))
			}
			return OnClock(t, zone), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a date: write a day such as 2026-11-20, or with the hour 2026-11-20T06", nearest.Quote(s))
}

// OnClock returns the moment at which the clocks of a zone show the date and hour of t. If clocks
// are put forward over that hour, as over midnight in Havana and Santiago, it is the moment of the
// change; package time may then return an hour of the previous day.
func OnClock(t time.Time, zone *time.Location) time.Time {
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

// AddDays returns the same hour of the day that is the given number of days later.
func AddDays(t time.Time, days int) time.Time {
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
	return OnClock(wall.AddDate(0, 0, days), t.Location())
}
