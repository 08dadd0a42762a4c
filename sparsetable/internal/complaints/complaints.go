// Package complaints logs recurring errors at most every 30 seconds.
package complaints

import (
	"errors"
	"log/slog"
	"time"

	"aibox/sparsetable/internal/bucketfile"
)

// complainEvery is the shortest interval between two logs of the same recurring error.
const complainEvery = 30 * time.Second

// Complaints logs the errors of the background writer, which retries whenever a Pull or Release
// wakes it: on a full disk hundreds of times a second. It belongs to one goroutine.
type Complaints struct {
	log    *slog.Logger
	now    func() time.Time
	last   string
	at     time.Time // when last was logged
	hushed int       // number of recurrences since then that were not logged
}

// New returns Complaints that log to log.
func New(log *slog.Logger) *Complaints { return &Complaints{log: log, now: time.Now} }

// About logs err, unless the same error was logged less than complainEvery ago.
func (c *Complaints) About(err error) {
	what := err.Error()
	if errors.Is(err, bucketfile.ErrNoSpace) {
		what = bucketfile.ErrNoSpace.Error() // its figures vary
	}
	now := c.now()
	if what == c.last && now.Sub(c.at) < complainEvery {
		c.hushed++
		return
	}
	attrs := []any{"error", err}
	if what == c.last && c.hushed > 0 {
		attrs = append(attrs, "times", c.hushed+1)
	}
	c.log.Error("sparsetable: the background writer failed; it tries again when rows are pulled or released", attrs...)
	c.last, c.at, c.hushed = what, now, 0
}
