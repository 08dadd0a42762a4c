package warmstart

import (
	"log/slog"
	"time"
)

// copyProgress logs how long copying the rows of a table takes: first when the speed can be
// estimated, and then from time to time.
type copyProgress struct {
	log   *slog.Logger
	clock func() time.Time
	rows  int64 // in all, approximately
	done  int64
	began time.Time
	next  time.Time // of the next line
}

const (
	firstProgress   = 3 * time.Second
	progressEvery   = 30 * time.Second
	rowsPerProgress = 1 << 14 // the clock is read once per this many rows
)

func newCopyProgress(log *slog.Logger, rows int64, clock func() time.Time) *copyProgress {
	now := clock()
	return &copyProgress{log: log, clock: clock, rows: rows, began: now, next: now.Add(firstProgress)}
}

// count counts a row.
func (p *copyProgress) count() {
	if p.done++; p.done%rowsPerProgress != 0 {
		return
	}
	now := p.clock()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	left := float64(max(0, p.rows-p.done)) * now.Sub(p.began).Seconds() / float64(p.done)
	p.log.Info("warm start: rows are copied", "rows", p.done, "of", max(p.rows, p.done), "seconds_left", int64(left+0.5))
}

// seconds returns the time taken so far.
func (p *copyProgress) seconds() float64 { return p.clock().Sub(p.began).Seconds() }
