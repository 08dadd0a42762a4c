package trainer

import (
	"context"
	"time"

	"aibox/trainer/remotesnapshots"
)

// onStop saves the current state after an interruption, and waits until it is uploaded.
func (s *snapshots) onStop() {
	if s.keep() {
		var last *remotesnapshots.Snapshot
		if s.saved != nil {
			last = &s.saved.Snapshot
		}
		s.uploads.Last(s.run.grace, last)
	}
}

// keep saves the current state if another process can resume from it, and reports whether it can.
func (s *snapshots) keep() bool {
	r := s.run
	if !s.pace.On() || r.midway || r.state.Epoch == 0 || r.engine == nil || r.table.Table == nil {
		return false
	}
	s.wait()
	if s.saved == nil || !s.saved.Record.Same(&r.state) {
		err := s.take()
		s.wait()
		if err != nil {
			r.log.Warn("the last snapshot could not be saved", "error", err)
		}
	}
	return true
}

// withGrace returns a context for work that may end up to d after ctx is cancelled. Then it is
// cancelled with the same cause.
func withGrace(ctx context.Context, d time.Duration) (context.Context, func()) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-late.Done():
		}
		cancel(context.Cause(ctx))
	})
	return late, func() {
		stop()
		cancel(context.Canceled)
	}
}
