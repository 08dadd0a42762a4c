package remote

import (
	"context"
	"io"
	"sync"
	"time"
)

// limiter limits how many bytes all goroutines together move per second. It lets bytes pass at
// once, and makes the next ones wait as long as those should have taken.
type limiter struct {
	perSecond int64 // 0 if there is no limit
	now       func() time.Time
	sleep     func(context.Context, time.Duration) error

	mu   sync.Mutex
	free time.Time // when the next bytes may pass
}

func newLimiter(perSecond int64) *limiter {
	return &limiter{perSecond: perSecond, now: time.Now, sleep: sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits until n bytes may pass.
func (l *limiter) wait(ctx context.Context, n int) error {
	if l.perSecond <= 0 {
		return nil
	}
	l.mu.Lock()
	now := l.now()
	if l.free.Before(now) {
		l.free = now
	}
	pause := l.free.Sub(now)
	l.free = l.free.Add(time.Duration(float64(n) / float64(l.perSecond) * float64(time.Second)))
	l.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	return l.sleep(ctx, pause)
}

// limitedReaderAt reads data no faster than the limiter allows.
type limitedReaderAt struct {
	ctx   context.Context
	limit *limiter
	data  io.ReaderAt
}

// limitedStep is how much passes the limiter at a time, so that the rate is smooth.
const limitedStep = 64 << 10

func (r limitedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for {
		step := min(len(p)-n, limitedStep)
		if r.limit.perSecond <= 0 {
			step = len(p) - n
		}
		if err := r.limit.wait(r.ctx, step); err != nil {
			return n, err
		}
		m, err := r.data.ReadAt(p[n:n+step], off+int64(n))
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// limitedReader reads no faster than the limiter allows.
type limitedReader struct {
	ctx   context.Context
	limit *limiter
	r     io.Reader
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if r.limit.perSecond > 0 {
		p = p[:min(len(p), limitedStep)]
	}
	n, err := r.r.Read(p)
	if e := r.limit.wait(r.ctx, n); e != nil {
		return n, e
	}
	return n, err
}
