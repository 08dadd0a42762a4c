package ssd

import (
	"context"
	"errors"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/complaints"
)

const (
	// The background writer starts when less than this part of the cache is
	// free, and stops when twice of it is.
	freeShare = 64
	// It writes the buckets of at most aheadStep rows before it looks again for buckets that
	// working sets carried. While those wait, the next Pulls can carry fewer, and each bucket
	// that they do not carry is read a second time.
	aheadStep = 512
)

// background is what runs beside the calls of the table's methods.
type background struct {
	kick    chan struct{} // wakes the background writer
	stop    context.CancelFunc
	stopped sync.WaitGroup

	failed struct {
		sync.Mutex
		err error // the first error that no call has returned yet
	}
}

// wake makes the background writer look for work.
func (b *background) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// stopBackground ends it and waits for that.
func (b *background) stopBackground() {
	if b.stop != nil {
		b.stop()
		b.stopped.Wait()
	}
}

// fail notes an error for failure.
func (b *background) fail(err error) {
	b.failed.Lock()
	defer b.failed.Unlock()
	if b.failed.err == nil {
		b.failed.err = err
	}
}

// failure returns the first error in the background since the last call of failure.
func (b *background) failure() error {
	b.failed.Lock()
	defer b.failed.Unlock()
	err := b.failed.err
	b.failed.err = nil
	return err
}

func (t *Table) wakeIfFull() {
	if t.opts.ReadOnly {
		return
	}
	if st := t.cache.Stats(); t.freeRows(st.Rows) < t.fitRows.Load()/freeShare || t.wantsSweep(st) {
		t.wake()
	}
}

// work is the background writer: it lets rows leave the cache before a Pull
// needs their room, and compacts files.
func (t *Table) work(ctx context.Context) {
	defer panics.Exit("the background writer of the table")
	recurring := complaints.New(t.opts.Logger)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		}
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			recurring.About(err)
			if errors.Is(err, bucketfile.ErrNoSpace) {
				continue // rows stay in memory; calls that need room for others return the error
			}
			t.fail(apierr.Of(err))
		}
	}
}

func (t *Table) step(ctx context.Context) error {
	writeCarries := func() (bool, error) { return t.writeCarries(ctx) }
	for ctx.Err() == nil {
		// Each turn does one step of each kind of work, so that none waits until
		// another is done. The buckets that working sets carried come first,
		// because the next working sets need their memory.
		worked := false
		for _, work := range []func() (bool, error){writeCarries, t.evictAhead, t.sweepAhead, t.reshape} {
			some, err := work()
			if err == nil && some { // space keeps up with writing, however busy that is
				err = t.keepSpace(ctx)
			}
			if errors.Is(err, bucketfile.ErrNoSpace) {
				return errors.Join(err, t.compact(ctx)) // which may make room
			}
			if err != nil {
				return err
			}
			worked = worked || some
		}
		if !worked {
			break
		}
	}
	// Files may have become free without a write, when a snapshot was dropped.
	return t.compact(ctx)
}

// evictAhead lets some rows leave the cache, if it is nearly full. It returns
// false if it is not, or if all that is left is pinned.
func (t *Table) evictAhead() (worked bool, err error) {
	if err := t.restoreSpare(); err != nil {
		return false, err
	}
	missing := 2*t.fitRows.Load()/freeShare - t.freeRows(t.cache.Stats().Rows)
	if missing <= 0 {
		return false, nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.keepShape(); err != nil {
		return false, err
	}
	n := int(min(missing, evictBatch))
	if dropped := t.dropClean(n, &t.rewrite.victims); dropped*enoughShare >= n {
		return true, nil
	}
	dropped, err := t.evict(int(min(missing, t.evictStep(), aheadStep)))
	return dropped > 0, err
}
