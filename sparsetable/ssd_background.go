package sparsetable

import (
	"context"
	"errors"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/bucketfile"
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

// wake makes the background writer look for work.
func (t *ssd) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

func (t *ssd) wakeIfFull() {
	if t.readOnly {
		return
	}
	if st := t.cache.Stats(); t.freeRows(st.Rows) < t.fitRows.Load()/freeShare || t.wantsSweep(st) {
		t.wake()
	}
}

// freeRows is how many more rows the cache takes.
func (t *ssd) freeRows(rows int64) int64 { return t.fitRows.Load() - rows }

// work is the background writer: it lets rows leave the cache before a Pull
// needs their room, and compacts files.
func (t *ssd) work(ctx context.Context) {
	defer panics.Exit("the background writer of the table")
	complaints := newComplaints(t.log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		}
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			complaints.about(err)
			if errors.Is(err, bucketfile.ErrNoSpace) {
				continue // rows stay in memory; calls that need room for others return the error
			}
			t.mu.Lock()
			if t.mu.failed == nil {
				t.mu.failed = tableError(err)
			}
			t.mu.Unlock()
		}
	}
}

func (t *ssd) step(ctx context.Context) error {
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
func (t *ssd) evictAhead() (worked bool, err error) {
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
