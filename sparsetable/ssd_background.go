package sparsetable

import (
	"context"
	"log/slog"
	"slices"
)

const (
	// The background writer starts when less than this part of the cache is
	// free, and stops when twice of it is.
	freeShare = 16
	// maxAnnounced bounds the list of announced passes that were not pulled.
	maxAnnounced = 256
)

// announcement tells the pass of a Pull by its keys.
type announcement struct {
	pass int64
	keys int
	sum  uint64 // of the hashes
}

func sumOf(hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		sum += h
	}
	return sum
}

// Announce implements Table.
func (t *ssd) Announce(pass int64, keys []uint64) {
	if t.enter() != nil {
		return
	}
	defer t.leave()
	if t.opts.SSD.CachePolicy != policyLookahead {
		return
	}
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = hashKey(k)
	}
	if noted, err := t.cache.Announce(pass, keys, hashes); err != nil || !noted {
		if err != nil {
			t.log.Warn("sparsetable: announce a pass", slog.Int64("pass", pass), slog.Any("error", err))
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.announced) == maxAnnounced {
		t.mu.announced = slices.Delete(t.mu.announced, 0, 1)
	}
	t.mu.announced = append(t.mu.announced, announcement{pass, len(keys), sumOf(hashes)})
}

// passOf is the announced pass that pulls these keys, -1 if there is none.
// Those announced before it have been given up.
func (t *ssd) passOf(hashes []uint64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.announced) == 0 {
		return -1
	}
	sum := sumOf(hashes)
	for i, a := range t.mu.announced {
		if a.keys == len(hashes) && a.sum == sum {
			t.mu.announced = slices.Delete(t.mu.announced, 0, i+1)
			return a.pass
		}
	}
	return -1
}

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
	if st := t.cache.Stats(); t.freeRows(st.Rows) < t.plan.fitRows/freeShare {
		t.wake()
	}
}

// freeRows is how many more rows the cache takes.
func (t *ssd) freeRows(rows int64) int64 { return t.plan.fitRows - rows }

// work is the background writer: it lets rows leave the cache before a Pull
// needs their room, and compacts files.
func (t *ssd) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		}
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			t.log.Error("sparsetable: in the background", "error", err)
			t.mu.Lock()
			if t.mu.failed == nil {
				t.mu.failed = tableError(err)
			}
			t.mu.Unlock()
		}
	}
}

func (t *ssd) step(ctx context.Context) error {
	for ctx.Err() == nil {
		missing := 2*t.plan.fitRows/freeShare - t.freeRows(t.cache.Stats().Rows)
		if missing <= 0 {
			break
		}
		t.rewrite.Lock()
		err := t.split()
		dropped := 0
		if err == nil {
			dropped, err = t.evict(int(min(missing, t.evictStep())))
		}
		t.rewrite.Unlock()
		if err != nil {
			return err
		}
		if dropped == 0 {
			break // what is left is pinned
		}
		// Space keeps up with writing, however busy that is.
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
	// Space may have become free without a write, with a snapshot.
	return t.compact(ctx)
}
