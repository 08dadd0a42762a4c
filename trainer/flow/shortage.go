package flow

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

// A table may run out of memory within its budget only for a moment, because garbage has not been
// collected yet or another process holds the memory. So before a job fails for that reason, it
// returns garbage to the system, and then waits.
const (
	memoryPatience = 30 * time.Second
	memoryPause    = 250 * time.Millisecond
)

// shortage is the state of one pass whose rows do not fit in memory although no others are pinned.
type shortage struct {
	patience, pause time.Duration
	since           time.Time // zero if nothing was done about it yet
	waits           bool
}

// retry returns garbage to the system on its first call. Later calls wait for memory, until
// patience has passed. It reports whether pulling the rows again is worth while. It does not wait
// for a pass that can be pulled in parts.
func (s *shortage) retry(ctx context.Context, divisible bool, log *slog.Logger, cause error) (again bool) {
	switch {
	case s.since.IsZero():
		s.since = time.Now()
		debug.FreeOSMemory()
		return true
	case divisible || time.Since(s.since) >= s.patience:
		return false
	case !s.waits:
		s.waits = true
		log.Warn("a mini-batch does not fit the memory that this process can use at present; it waits until enough is free",
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
