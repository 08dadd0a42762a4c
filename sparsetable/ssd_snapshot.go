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

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssdSnapshot is a snapshot being written: the buckets as the index has them at
// one instant, and the rows that were not in buckets then.
type ssdSnapshot struct {
	t      *ssd
	commit *catalog.Commit
	delta  *snapshotDelta
	pages  *slots.Capture
	state  bucketfile.State
	stored int64
	slots  uint32
	record []byte
	held   bool
	// unknown: the catalog cannot tell whether the snapshot is there.
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
	s := &ssdSnapshot{t: t, record: bytes.Clone(record)}
	err := t.failure()
	if err == nil {
		err = s.begin()
	}
	if err == nil {
		err = s.fix()
	}
	if err != nil {
		err = errors.Join(err, s.abandon())
		<-t.saving
		t.leave()
		return nil, tableError(err)
	}
	p := &PendingSnapshot{done: make(chan struct{})}
	go func() { // Close waits for it: it has entered
		p.info, p.err = s.write(ctx)
		<-t.saving
		close(p.done)
		t.leave()
	}()
	return p, nil
}

// begin does what can be done before the state is fixed.
func (s *ssdSnapshot) begin() (err error) {
	t := s.t
	t.rewrite.Lock()
	// The catalog's lists of pages, old and new.
	err = t.reserve(int64(len(s.record)) + 24*int64(t.index.Pages()))
	t.rewrite.Unlock()
	if errors.Is(err, errNoVictims) {
		err = nil // all rows are pinned: better a little over than no snapshot
	}
	if err != nil {
		return err
	}
	if s.commit, err = t.catalog.Begin(); err != nil {
		return err
	}
	var id [8]byte
	if _, err := crand.Read(id[:]); err != nil {
		return fmt.Errorf("sparsetable: name a file: %w", err)
	}
	s.delta, err = t.newDelta(binary.LittleEndian.Uint64(id[:]))
	return err
}

// fix fixes the state, at the instant at which it holds both rewrite and mu:
// no bucket is between its being written and its being in the index, and rows
// that were updated are in a live set or dirty. Dirty rows are marked, to be
// saved before they change. Rows of live sets are saved at once: as soon as
// Snapshot returns, they may be updated.
func (s *ssdSnapshot) fix() error {
	t, start := s.t, time.Now()
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
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
	t.cache.ChangeAll(rowcache.Dirty, rowcache.Change{Set: rowSaving})
	for _, ws := range t.mu.live {
		if ws.mode == PullCreate {
			t.cache.Change(ws.refs, rowcache.Change{Set: rowSaving})
		}
	}
	t.snap.Store(s.delta)
	for _, ws := range t.mu.live {
		if ws.mode == PullCreate {
			s.delta.save(ws.refs)
		}
	}
	t.log.Debug("snapshot fixed", slog.Uint64("id", s.commit.ID()), slog.Duration("stall", time.Since(start)))
	return nil
}

// write writes what fix has fixed and commits it.
func (s *ssdSnapshot) write(ctx context.Context) (info SnapshotInfo, err error) {
	info, err = s.writeAll(ctx)
	if err != nil {
		return SnapshotInfo{}, tableError(errors.Join(err, s.abandon()))
	}
	t := s.t
	t.indexMu.Lock()
	s.pages.Done()
	t.indexMu.Unlock()
	t.snap.Store(nil)
	err = s.delta.close()
	t.mu.Lock()
	t.mu.stats.Snapshots++
	t.mu.stats.SnapshotBytes += info.Bytes
	t.mu.Unlock()
	if err != nil { // it is committed all the same
		t.log.Warn("sparsetable: close a snapshot's file", "error", err)
	}
	return info, nil
}

func (s *ssdSnapshot) writeAll(ctx context.Context) (SnapshotInfo, error) {
	t, d := s.t, s.delta
	none := SnapshotInfo{}
	// The pages first: as long as they are not written, whoever changes one has
	// to copy it. They count only once they are committed.
	if err := s.writePages(ctx); err != nil {
		return none, err
	}
	if err := d.saveAll(ctx.Err); err != nil {
		return none, err
	}
	if err := d.finish(); err != nil {
		return none, err
	}
	if err := t.files.Flush(ctx); err != nil {
		return none, err
	}
	c := catalog.Snapshot{
		Slots: s.slots, Rows: s.stored + d.fresh, Record: s.record,
		Counters: map[string]int64{
			counterNextFile: int64(s.state.NextFile), counterSeq: int64(s.state.Seq), counterStored: s.stored,
		},
	}
	for _, f := range s.state.Files {
		c.Files = append(c.Files, catalog.File{ID: f.File, Bytes: f.Bytes, LiveBytes: f.LiveBytes})
	}
	if d.total > 0 {
		c.Deltas = []catalog.Delta{{Name: deltaName(t.tableID, d.id), Bytes: d.bytes, Rows: d.total}}
	}
	if err := s.commit.Commit(c); err != nil {
		s.unknown = errors.Is(err, catalog.ErrFailed)
		return none, err
	}
	committed, err := t.catalog.Snapshot(s.commit.ID())
	if err != nil {
		return none, err
	}
	if d.total == 0 {
		if err := t.devices[0].Remove(deltaName(t.tableID, d.id)); err != nil {
			t.log.Warn("sparsetable: remove an empty file", "error", err)
		}
	}
	return t.infoOf(committed), nil
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
		if !ok {
			return nil
		}
		buf = data
		if err := s.commit.PutPage(page, data); err != nil {
			return err
		}
	}
}

// abandon undoes what was done for a snapshot that failed. Where the snapshot
// may be there all the same, its files stay: the next Open knows.
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
	}
	if s.delta != nil {
		// fix stores it under both locks, so that nobody marks rows any more.
		t.cache.ChangeAll(rowSaving, rowcache.Change{Clear: rowSaving})
		t.snap.Store(nil)
		errs = append(errs, s.delta.close())
		if !s.unknown {
			errs = append(errs, t.devices[0].Remove(deltaName(t.tableID, s.delta.id)))
		}
	}
	if s.held && !s.unknown {
		errs = append(errs, t.files.Unhold(s.commit.ID()))
	}
	return errors.Join(errs...)
}

func (t *ssd) infoOf(s catalog.Snapshot) SnapshotInfo {
	info := SnapshotInfo{ID: s.ID, Rows: s.Rows, Bytes: s.PageBytes, Layout: t.layout, Record: bytes.Clone(s.Record)}
	for _, d := range s.Deltas {
		info.Bytes += d.Bytes
	}
	return info
}

// Snapshots implements Table.
func (t *ssd) Snapshots() ([]SnapshotInfo, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	var infos []SnapshotInfo
	for _, s := range t.catalog.Snapshots() {
		infos = append(infos, t.infoOf(s))
	}
	return infos, nil
}

// DropSnapshot implements Table.
func (t *ssd) DropSnapshot(id uint64) error {
	if t.readOnly {
		return ErrReadOnly
	}
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	if id == 0 {
		return fmt.Errorf("%w: 0", ErrNoSnapshot)
	}
	s, err := t.catalog.Snapshot(id)
	if err == nil {
		err = t.catalog.Drop(id)
	}
	if err != nil {
		return tableError(err)
	}
	errs := []error{t.files.Unhold(id)}
	for _, d := range s.Deltas {
		errs = append(errs, t.devices[0].Remove(d.Name))
	}
	t.wake()
	return errors.Join(errs...)
}
