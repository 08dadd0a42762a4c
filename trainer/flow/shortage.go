package flow

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

// A table that cannot have the memory of its budget may lack it for a moment only: it may be
// garbage that has not been collected yet, or another process may have it. So before a job fails
// for that, garbage is given back to the system, and then the job waits.
const (
	memoryPatience = 30 * time.Second
	memoryPause    = 250 * time.Millisecond
)

// shortage is the memory that the rows of one pass lack while no others are pinned.
type shortage struct {
	patience, pause time.Duration
	since           time.Time // zero: nothing was done about it yet
	waits           bool
}

// relieve gives garbage back to the system, the first time, and waits for memory after that, until
// patience ends. It reports whether pulling the rows again is worth while. A pass that can be
// pulled in parts is not waited for.
func (s *shortage) relieve(ctx context.Context, divisible bool, log *slog.Logger, cause error) (again bool) {
	switch {
	case s.since.IsZero():
		s.since = time.Now()
		debug.FreeOSMemory()
		return true
	case divisible || time.Since(s.since) >= s.patience:
		return false
	case !s.waits:
		s.waits = true
		log.Warn("a mini-batch does not fit the memory that this process can have at present; it waits for some to become free",
			"longest_wait", s.patience, "error", cause)
	}
	select {
	case <-time.After(s.pause):
		debug.FreeOSMemory()
		return true
	case <-ctx.Done():
		return false
	}
}
