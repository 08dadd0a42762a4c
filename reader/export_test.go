package reader

import (
	"context"
	"runtime"

	"golang.org/x/sys/unix"
)

// SerialTime reads an input, and returns the processor time in nanoseconds that the
// goroutine which calls Next spends, without the mini-batches that it makes while it waits,
// since those are work for any goroutine.
func SerialTime(ctx context.Context, o Options) (spent float64, c Counts, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := Open(ctx, o)
	if err != nil {
		return 0, c, err
	}
	defer func() { _ = r.Close() }()
	b := r.build
	began := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	for {
		for r.ended == nil && len(b.waiting) < b.depth {
			r.ended = r.draw(ctx)
		}
		if len(b.waiting) == 0 {
			break
		}
		if d := b.waiting[0]; !d.made {
			<-d.done
			d.made = true
		}
		pass, _, err := b.merge(ctx)
		if err != nil {
			return 0, c, err
		}
		if pass != nil {
			pass.Recycle()
		}
	}
	return clock(unix.CLOCK_THREAD_CPUTIME_ID) - began, r.rows.snapshot(), nil
}

// clock is the time of a clock in nanoseconds.
func clock(id int32) float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err)
	}
	return float64(t.Nano())
}
