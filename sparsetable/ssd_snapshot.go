package sparsetable

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/slots"
)

// ssdSnapshot is a snapshot being written: the buckets as the index has them at
// one instant, and the rows that were not in buckets then.
type ssdSnapshot struct {
	t      *ssd
	commit *catalog.Commit
	delta  *snapshotDelta
	// inherited are the files of earlier snapshots that have the rest of the dirty rows.
	inherited []catalog.Delta
	pages     *slots.Capture
	state     bucketfile.State
	stored    int64
	slots     uint32
	record    []byte
	held      bool
	marked    bool  // rows were marked as saved, or may be
	free      int64 // free bytes of the delta file's file system, before the file was written
	// unknown says that the catalog failed and it is not known whether the snapshot is committed.
	unknown bool
}

// Snapshot implements Table.
func (t *ssd) Snapshot(ctx context.Context, record []byte) (*PendingSnapshot, error) {
	if t.readOnly {
		return nil, ErrReadOnly
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	if err := acquire(ctx, t.saving); err != nil {
		t.leave()
		return nil, err
	}
	err := t.failure()
	var s *ssdSnapshot
	if err == nil {
		s, err = t.fixSnapshot(ctx, record)
	}
	if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil { // compaction may make room
		t.files.AwaitDeletions()
		s, err = t.fixSnapshot(ctx, record)
	}
	if err != nil {
		<-t.saving
		t.leave()
		return nil, tableError(err)
	}
	p := &PendingSnapshot{done: make(chan struct{})}
	panics.Go("writing a snapshot of the table", func() { // Close waits for it, because leave comes at its end
		p.info, p.err = s.write(ctx)
		<-t.saving
		close(p.done)
		t.leave()
	})
	return p, nil
}

// fixSnapshot fixes the present state for a snapshot. If that fails, it removes
// everything that it made. REQUIRES: saving is held.
func (t *ssd) fixSnapshot(ctx context.Context, record []byte) (*ssdSnapshot, error) {
	s := &ssdSnapshot{t: t, record: bytes.Clone(record)}
	err := s.begin(ctx)
	if err == nil {
		err = s.fix()
	}
	if err != nil {
		return nil, errors.Join(fullDisk(err, t.devices[0]), s.abandon())
	}
	return s, nil
}

// begin does what can be done before the state is fixed.
func (s *ssdSnapshot) begin(ctx context.Context) (err error) {
	t := s.t
	// These are blocks for the rows that fix copies, so that it does not have to
	// wait for a write as long as there are not too many. The pool's own blocks
	// hold a few thousand rows of a usual size.
	extra := s.pinnedBlocks()
	if err := s.reserve(ctx, extra); errors.Is(err, errNoVictims) {
		extra = 0 // no row can leave the cache: what a snapshot needs at least is reserved from the start
	} else if err != nil {
		return err
	}
	if s.free, err = t.devices[0].Free(); err != nil {
		return fmt.Errorf("sparsetable: free space of %s: %w", t.devices[0].Dir(), err)
	}
	if s.commit, err = t.catalog.Begin(); err != nil {
		return err
	}
	var id [8]byte
	if _, err := crand.Read(id[:]); err != nil {
		return fmt.Errorf("sparsetable: choose a name for the file of a snapshot: %w", err)
	}
	s.delta, err = t.newDelta(binary.LittleEndian.Uint64(id[:]), extra)
	return err
}

// reserve makes room in memory for copies of pages and for that many blocks, which
// count as in use from then on, as do the catalog's lists of pages, for which the table
// always has room. Errors: errNoVictims where there is no room; then the copies have the
// room that the table always has, and there are no blocks.
func (s *ssdSnapshot) reserve(ctx context.Context, blocks int) error {
	t := s.t
	return t.inSteps(ctx, func() error {
		bytes := int64(blocks) * int64(deltaBlockBytes(t.layout))
		t.pageBytes.Store(t.leastPageBytes())
		t.listBytes.Store(t.catalog.MemoryBytes() - catalog.FixedBytes + t.snapshotListBytes())
		pages := t.mostPageBytes()
		err := t.reserve(int64(len(s.record)) + pages - t.leastPageBytes() + bytes)
		if errors.Is(err, bucketfile.ErrNoSpace) {
			return errNoVictims // dirty rows cannot leave, so no room can be made
		}
		if err == nil {
			t.pageBytes.Store(pages)
			t.snapBytes.Store(bytes)
		}
		return err
	})
}

// unreserve gives the blocks' memory back to the cache.
func (s *ssdSnapshot) unreserve() {
	t := s.t
	t.snapBytes.Store(0)
	t.pageBytes.Store(0)
	t.listBytes.Store(0)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.giveCache(); err != nil {
		t.log.Warn("sparsetable: the cache could not take back the memory of a snapshot", "error", err)
	}
}

// pinnedBlocks is how many blocks the pinned rows fill beyond those of the pool,
// but at most as many as a small part of the budget holds.
func (s *ssdSnapshot) pinnedBlocks() int {
	t := s.t
	rows := int64(0)
	t.mu.Lock()
	for _, ws := range t.mu.live {
		if ws.mode == PullCreate {
			rows += int64(len(ws.refs)) // a row of several sets counts several times
		}
	}
	t.mu.Unlock()
	size := int64(deltaBlockBytes(t.layout))
	perBlock := (size - deltaHeaderBytes) / int64(deltaEntryBytes+t.layout.Bytes())
	return int(max(0, min((rows+perBlock-1)/perBlock-deltaPoolBlocks, t.opts.MemoryBytes/deltaExtraShare/size)))
}

// fix fixes the state while it holds both rewrite and mu. Then no bucket is written
// that the index does not point to yet, and every updated row is in a live set or
// dirty. BeginSave marks the dirty rows, which are to be saved before they change, unless
// an inherited file has them.
// Rows of live sets are saved at once, because they may be updated as soon as
// Snapshot returns. So the time of fix depends on the number of these alone. It
// waits for the device only where the blocks that begin could get do not hold them.
func (s *ssdSnapshot) fix() error {
	t, start := s.t, time.Now()
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if invariants.Enabled {
		t.checkTable()
	}
	state, err := t.files.Hold(s.commit.ID())
	if err != nil {
		return err
	}
	s.state, s.held, s.stored = state, true, t.rewrite.stored
	t.indexMu.Lock()
	s.pages, s.slots = t.index.BeginCapture(), t.index.Slots()
	t.indexMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.cache.Stats()
	if s.inherited = s.inherit(st); s.inherited != nil {
		s.delta.saved = st.Saved
	}
	s.delta.inherits = s.inherited != nil
	if err := s.claim(st); err != nil {
		return fmt.Errorf("sparsetable: save the rows that are in no bucket yet: %w", err)
	}
	s.marked = true
	t.cache.BeginSave()
	t.snap.Store(s.delta)
	for _, ws := range t.mu.live {
		if ws.mode == PullCreate {
			s.delta.savePinned(ws.refs)
		}
	}
	s.delta.settleFixed()
	t.log.Debug("snapshot fixed", slog.Uint64("id", s.commit.ID()), slog.Duration("stall", time.Since(start)))
	return nil
}

// write writes what fix has fixed and commits it.
func (s *ssdSnapshot) write(ctx context.Context) (info SnapshotInfo, err error) {
	info, err = s.writeAll(ctx)
	if err != nil {
		return SnapshotInfo{}, tableError(errors.Join(fullDisk(err, s.t.devices[0]), s.abandon()))
	}
	t := s.t
	t.indexMu.Lock()
	s.pages.Done()
	t.indexMu.Unlock()
	t.snap.Store(nil)
	err = s.delta.close()
	s.unreserve()
	t.mu.Lock()
	t.mu.stats.Snapshots++
	t.mu.stats.SavedEarly += s.delta.counts.early
	t.mu.Unlock()
	if t.opts.SSD.DirBudgetBytes > 0 {
		t.wake() // the directory may be nearly full now, so that files must be emptied
	}
	if err != nil { // the snapshot is committed nevertheless
		t.log.Warn("sparsetable: a snapshot is committed, but its file could not be closed", "error", err)
	}
	return info, nil
}

func (s *ssdSnapshot) writeAll(ctx context.Context) (SnapshotInfo, error) {
	t, d := s.t, s.delta
	none := SnapshotInfo{}
	// The pages are written first, because as long as they are not written, a
	// change of one has to copy it. They have no effect before they are committed.
	if err := s.writePages(ctx); err != nil {
		return none, err
	}
	if err := d.saveOwed(ctx.Err); err != nil {
		return none, err
	}
	if err := d.saveClean(ctx.Err); err != nil {
		return none, err
	}
	if err := d.finish(); err != nil {
		return none, err
	}
	d.settle(d.bytes)
	if err := t.files.Flush(ctx); err != nil {
		return none, err
	}
	n := d.counts
	c := catalog.Snapshot{
		Slots: s.slots, Rows: s.stored + n.fresh, Record: s.record,
		Counters: map[string]int64{
			counterNextFile: int64(s.state.NextFile), counterSeq: int64(s.state.Seq), counterStored: s.stored,
		},
	}
	t.putLife(c.Counters)
	total := n.dirtyRows + n.cleanRows
	for _, f := range s.state.Files {
		c.Files = append(c.Files, catalog.File{ID: f.File, Incarnation: f.Incarnation, Bytes: f.Bytes, LiveBytes: f.LiveBytes, Begun: f.Begun})
	}
	c.Deltas = s.inherited
	if total > 0 {
		c.Deltas = append(c.Deltas, s.ownDelta(total))
	}
	if err := s.commit.Commit(c); err != nil {
		s.unknown = errors.Is(err, catalog.ErrFailed)
		return none, err
	}
	t.rebase(c.Deltas)
	committed, err := t.catalog.Snapshot(s.commit.ID())
	if err != nil {
		return none, err
	}
	if total == 0 {
		if err := t.removeDelta(deltaName(t.tableID, d.id), d.claimed); err != nil {
			t.log.Warn("sparsetable: the empty file of a snapshot could not be removed", "error", err)
		}
	}
	return t.infoOf(committed), nil
}

// ownDelta describes the file that the snapshot has written, with that many rows.
func (s *ssdSnapshot) ownDelta(rows int64) catalog.Delta {
	d := s.delta
	own := catalog.Delta{
		Name: deltaName(s.t.tableID, d.id), Bytes: d.bytes, Rows: rows, Snapshot: s.commit.ID(),
		DirtyBytes: d.counts.dirtyBytes, DirtyRows: d.counts.dirtyRows, Seq: s.state.Seq,
	}
	for _, f := range s.state.Growing {
		own.Growing = append(own.Growing, catalog.FileEnd{File: f.File, Bytes: f.Bytes})
	}
	return own
}

func (s *ssdSnapshot) writePages(ctx context.Context) error {
	var buf []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.t.indexMu.Lock()
		page, data, ok := s.pages.Next(buf[:0])
		s.t.indexMu.Unlock()
		s.t.tookPage()
		if !ok {
			return nil
		}
		buf = data
		if err := s.commit.PutPage(page, data); err != nil {
			return err
		}
	}
}

// abandon undoes what was done for a snapshot that failed. Where the snapshot may
// be committed nevertheless, its files stay; the next Open finds out.
func (s *ssdSnapshot) abandon() error {
	t := s.t
	var errs []error
	if s.commit != nil {
		errs = append(errs, s.commit.Abort())
	}
	if s.pages != nil {
		t.indexMu.Lock()
		s.pages.Abort()
		t.indexMu.Unlock()
		t.tookPage()
	}
	if s.delta != nil {
		// No row may seem to be saved already at the next snapshot.
		if s.marked && !s.unknown {
			t.rebase(nil)
		}
		t.forgetOld()
		t.snap.Store(nil)
		errs = append(errs, s.delta.close())
		if !s.unknown {
			errs = append(errs, t.removeDelta(deltaName(t.tableID, s.delta.id), s.delta.claimed))
		}
	}
	s.unreserve()
	if s.held && !s.unknown {
		errs = append(errs, t.files.Unhold(s.commit.ID()))
	}
	return errors.Join(errs...)
}
