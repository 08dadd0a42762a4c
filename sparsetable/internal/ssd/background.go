package ssd

import (
	"context"
	"errors"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/errorlog"
)

const (
	// The background writer starts when less than 1/freeShare of the cache is free, and stops at
	// 2/freeShare.
	freeShare = 64
	// It writes the buckets of at most aheadStep rows before it checks again for buckets that
	// working sets carried. While those wait, the next Pulls can carry fewer, and each bucket that
	// they do not carry is read a second time.
	aheadStep = 512
)

// background is the state of what runs in the background of method calls.
type background struct {
	wakeups chan struct{} // wakes the background writer
	stop    context.CancelFunc
	stopped sync.WaitGroup

	failed struct {
		sync.Mutex
		err error // the first error that no call has returned yet
	}
}

// wake tells the background writer to look for work.
func (b *background) wake() {
	select {
	case b.wakeups <- struct{}{}:
	default:
	}
}

// stopBackground stops the background goroutines and waits for them.
func (b *background) stopBackground() {
	if b.stop != nil {
		b.stop()
		b.stopped.Wait()
	}
}

// fail records an error for failure to return.
func (b *background) fail(err error) {
	b.failed.Lock()
	defer b.failed.Unlock()
	if b.failed.err == nil {
		b.failed.err = err
	}
}

// failure returns the first background error since the last call of failure.
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

// work is the background writer: it evicts rows before a Pull needs their room, and compacts files.
func (t *Table) work(ctx context.Context) {
	defer panics.Exit("the background writer of the table")
	recurring := errorlog.New(t.opts.Logger)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wakeups:
		}
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			recurring.Log(err)
			if errors.Is(err, bucketfile.ErrNoSpace) {
				continue // rows stay in memory; calls that need their room return the error
			}
			t.fail(apierr.Of(err))
		}
	}
}

func (t *Table) step(ctx context.Context) error {
	writeCarries := func() (bool, error) { return t.writeCarries(ctx) }
	for ctx.Err() == nil {
		// Each iteration does one step of each kind of work, so that none waits for another to
		// finish. The buckets that working sets carried come first, because the next working sets
		// need their memory.
		worked := false
		for _, work := range []func() (bool, error){writeCarries, t.evictAhead, t.sweepAhead, t.reshape} {
			some, err := work()
			if err == nil && some { // compaction keeps up with writing, however busy the writer is
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
	// Dropping a snapshot may have freed files without a write.
	return t.compact(ctx)
}

// evictAhead evicts some rows if the cache is nearly full. It returns false if it is not, or if all
// remaining rows are pinned.
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
