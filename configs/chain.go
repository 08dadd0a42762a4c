package configs

import (
	"iter"
	"time"

	"aibox/configs/internal/jobdate"
)

// WarmStartLatest as training.warm_start stands for the newest model of the chain that
// the job belongs to. The chain consists of the directories that output.model_dir names
// at the job's date and at earlier ones; without a date in it, of that directory alone.
const WarmStartLatest = "latest"

// Night returns a name for the job's date, or "" without a date. Jobs of the same night have equal
// names, and the names sort chronologically: 2026-11-20, or 2026-11-20T06 if the job differs
// between hours of the day.
func (j *Job) Night() string {
	if !j.Dated {
		return ""
	}
	return j.nightOf(j.Date)
}

// NightBefore returns the name of the night before the job's, if it has a date; if the job differs
// between hours, that is the hour before.
func (j *Job) NightBefore() string {
	if !j.Dated {
		return ""
	}
	return j.nightOf(nightBefore(j.Date, j.hourly))
}

func (j *Job) nightOf(date time.Time) string {
	if j.hourly {
		return date.Format(jobdate.Hour)
	}
	return date.Format(jobdate.Day)
}

// ModelDirHasDate reports whether output.model_dir has a date in it, so that other dates
// have other model directories.
func (j *Job) ModelDirHasDate() bool { return j.modelDir != nil }

// SharesModelDir reports whether output.model_dir is also that of the night before.
func (j *Job) SharesModelDir() bool {
	return j.modelDir == nil || followUpward(j.modelDir.At(nightBefore(j.Date, j.hourly))) == j.Output.ModelDir
}

// nightBefore is the day before, or the hour before.
func nightBefore(date time.Time, hourly bool) time.Time {
	if hourly {
		return date.Add(-time.Hour)
	}
	return jobdate.AddDays(date, -1)
}

// EarlierModelDirs yields the directories that output.model_dir names at earlier dates, back to
// 1970, other than the current one, each with the latest night at which it does. The latest night
// comes first. The directories need not exist.
func (j *Job) EarlierModelDirs() iter.Seq2[string, string] {
	return func(yield func(dir, night string) bool) {
		if j.modelDir == nil {
			return
		}
		hourly := j.modelDir.ChangesWithin(j.Date)
		last, date := "", j.Date
		if j.hourly && !hourly { // the last of the nights that share a directory
			date = jobdate.OnClock(time.Date(date.Year(), date.Month(), date.Day(), 23, 0, 0, 0, time.UTC), date.Location())
		}
		for date = nightBefore(date, hourly); date.Year() >= 1970; date = nightBefore(date, hourly) {
			dir := followUpward(j.modelDir.At(date))
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
