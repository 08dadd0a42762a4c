// Package errorlog logs recurring errors at most every 30 seconds.
package errorlog

import (
	"errors"
	"log/slog"
	"time"

	"aibox/sparsetable/internal/bucketfile"
)

// interval is the shortest interval between two logs of the same recurring error.
const interval = 30 * time.Second

// Limiter logs the errors of the background writer, which retries whenever a Pull or Release
// wakes it: on a full disk hundreds of times a second. It belongs to one goroutine.
type Limiter struct {
	log        *slog.Logger
	now        func() time.Time
	last       string
	at         time.Time // when last was logged
	suppressed int       // number of recurrences since then that were not logged
}

// New returns a Limiter that logs to log.
func New(log *slog.Logger) *Limiter { return &Limiter{log: log, now: time.Now} }

// Log logs err, unless the same error was logged less than interval ago.
func (l *Limiter) Log(err error) {
	what := err.Error()
	if errors.Is(err, bucketfile.ErrNoSpace) {
		what = bucketfile.ErrNoSpace.Error() // its figures vary
	}
	now := l.now()
	if what == l.last && now.Sub(l.at) < interval {
		l.suppressed++
		return
	}
	attrs := []any{"error", err}
	if what == l.last && l.suppressed > 0 {
		attrs = append(attrs, "times", l.suppressed+1)
	}
	l.log.Error("sparsetable: the background writer failed; it tries again when rows are pulled or released", attrs...)
	l.last, l.at, l.suppressed = what, now, 0
}
