package start

import (
	"math"
	"time"

	"aibox/internal/errkind"
)

// Day returns the day that rows of this run are stamped with.
func (m *Model) Day() (uint32, error) {
	p := m.Previous
	switch {
	case m.Job.Dated:
		year, month, date := m.Job.Date.Date() // in its time zone
		day := time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
		if day < 1 || day > math.MaxUint32 {
			return 0, errkind.Errorf(errkind.Usage, "the job's date is %s, but it must be after 1970-01-01", m.Job.Date.Format(time.DateOnly))
		}
		if p != nil && p.DayFromDate && uint32(day) < p.Day {
			return 0, errkind.Errorf(errkind.Usage, "training.warm_start: the earlier model is of %s, which is after this job's date, %s",
				dayText(p.Day), m.Job.Date.Format(time.DateOnly))
		}
		return uint32(day), nil
	case p != nil:
		if p.DayFromDate && m.agesRows() {
			return 0, errkind.Errorf(errkind.Usage, "training.warm_start: the earlier model is of %s, but this job has no date, so show_decay and expiry would be wrong; give it one (--date, or {{date}} in a path)", dayText(p.Day))
		}
		return p.Day + 1, nil
	default:
		return 1, nil
	}
}

const secondsPerDay = 24 * 60 * 60

// dayText returns the date of a day counted from 1970.
func dayText(day uint32) string {
	return time.Unix(int64(day)*secondsPerDay, 0).UTC().Format(time.DateOnly)
}

func (m *Model) agesRows() bool {
	t := m.Job.SparseTable
	return t.ShowDecay != 1 || t.Expiry.UnseenDays > 0 || t.Expiry.MinShow > 0
}

// daysBetween returns the number of days from the night a to the night b.
func daysBetween(a, b string) int {
	var days [2]time.Time
	for i, night := range []string{a, b} {
		day, err := time.Parse(time.DateOnly, night[:min(len(night), len(time.DateOnly))])
		if err != nil {
			return 0
		}
		days[i] = day
	}
	return int(days[1].Sub(days[0]).Hours() / 24)
}
