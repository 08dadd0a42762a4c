package checkpoint

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/slots"
)

// The extra blocks of a dump, for rows that are about to change, take at most 1/dumpShare of the
// budget.
const dumpShare = 32

// Snapshot is a snapshot being written: the buckets in the index at one instant, and the rows that
// were not in buckets then.
type Snapshot struct {
	c      *Store
	commit *catalog.Commit
	dump   *Dump
	// inherited are the files of earlier snapshots that have the rest of the dirty rows.
	inherited []catalog.Delta
	pages     *slots.Capture
	state     bucketfile.State
	stored    int64
	slots     uint32
	record    []byte
	held      bool
	marked    bool    // rows may be marked as saved
	free      []int64 // free bytes of each directory's file system, before the files were written
	// unknown says that the catalog failed and it is unknown whether the snapshot is committed.
	unknown bool
}

// Fix fixes the present state for a snapshot. If that fails, it removes everything that it made.
// REQUIRES: no other snapshot is being fixed or written, until Write returns.
func (c *Store) Fix(record []byte) (*Snapshot, error) {
	s := &Snapshot{c: c, record: bytes.Clone(record)}
	err := s.begin()
	if err == nil {
		err = s.fix()
	}
	if err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// begin does what can be done before the state is fixed.
func (s *Snapshot) begin() (err error) {
	c := s.c
	// The extra blocks are for rows that training is about to change, so that it does not have to
	// wait for a write as long as there are not too many. The pool's own blocks hold a few thousand
	// rows of a usual size.
	extra := s.moreBlocks()
	if granted, err := s.reserve(extra); err != nil {
		return err
	} else if !granted {
		extra = 0 // the minimum for a snapshot is reserved from the start
	}
	for _, dev := range c.Deltas.Devices {
		free, err := dev.Free()
		if err != nil {
			return fmt.Errorf("sparsetable: free space of %s: %w", dev.Dir(), err)
		}
		s.free = append(s.free, free)
	}
	if s.commit, err = c.Catalog.Begin(); err != nil {
		return err
	}
	var id [8]byte
	if _, err := crand.Read(id[:]); err != nil {
		return fmt.Errorf("sparsetable: choose a name for the file of a snapshot: %w", err)
	}
	s.dump, err = c.newDump(binary.LittleEndian.Uint64(id[:]), extra)
	return err
}

// reserve takes memory for copies of pages and for that many blocks. From then on these count as
// used, as do the catalog's lists of pages, for which the table always has room. If the cache has
// filled its memory, the copies get only the room that the table always has, and there are no extra
// blocks. The reason: while rows are pinned in all parts of a large cache, it cannot give memory
// back, however many rows are written to their buckets and leave it, and training would wait for
// seconds.
func (s *Snapshot) reserve(blocks int) (granted bool, err error) {
	c := s.c
	bytes, pages := int64(blocks)*int64(c.Deltas.BlockBytes()), int64(0)
	return c.Table.TakeMemory(func() int64 {
		least := c.leastPageBytes()
		c.pageBytes.Store(least)
		c.listBytes.Store(c.Catalog.MemoryBytes() - catalog.FixedBytes + c.nextListBytes())
		pages = c.mostPageBytes()
		return int64(len(s.record)) + pages - least + bytes
	}, func() {
		c.pageBytes.Store(pages)
		c.blockBytes.Store(bytes)
	})
}

// unreserve gives the memory back to the table.
func (s *Snapshot) unreserve() {
	c := s.c
	c.blockBytes.Store(0)
	c.pageBytes.Store(0)
	c.listBytes.Store(0)
	if err := c.Table.ReleaseMemory(); err != nil {
		c.Logger.Warn("sparsetable: the cache could not take back the memory of a snapshot", "error", err)
	}
}

// moreBlocks is how many blocks the rows of the snapshot fill beyond those of the pool, bounded by
// a small part of the budget.
func (s *Snapshot) moreBlocks() int {
	d, st := s.c.Deltas, s.c.Cache.Stats()
	rows, dirs := st.Dirty+st.InFlight, int64(len(d.Devices)) // a dirty row that is pinned counts twice; each directory has one partly filled block
	blocks := (rows+d.RowsPerBlock()-1)/d.RowsPerBlock() + dirs - 1 - dirs*deltafile.PoolBlocks
	return int(max(0, min(blocks, s.c.MemoryBytes/dumpShare/int64(d.BlockBytes()))))
}

// fix fixes the state while nobody writes a bucket, and nobody pins or releases rows. Then the
// index points to all buckets, and every updated row is in a working set or dirty. BeginSave marks
// the dirty rows, which must be saved before they change, unless an inherited file has them. Rows
// of working sets are saved at once, because they may be updated as soon as Fix returns. So the
// time of fix depends only on their number. It waits for the device only if the blocks that begin
// could get do not hold them.
func (s *Snapshot) fix() error {
	c, start := s.c, time.Now()
	err := c.Table.BlockWrites(func(storedRows int64) error {
		state, err := c.files.Hold(s.commit.ID())
		if err != nil {
			return err
		}
		s.state, s.held, s.stored = state, true, storedRows
		s.dump.domains = c.domains(state)
		c.IndexMu.Lock()
		s.pages, s.slots = c.Index.BeginCapture(), c.Index.Slots()
		c.IndexMu.Unlock()
		return c.Table.BlockReleases(s.mark)
	})
	if err != nil {
		return err
	}
	c.Logger.Debug("snapshot fixed", slog.Uint64("id", s.commit.ID()), slog.Duration("stall", time.Since(start)))
	return nil
}

// mark marks the rows to be saved, and saves those that may be updated. REQUIRES: no bucket is
// written, and no row is pinned or released.
func (s *Snapshot) mark(updatable iter.Seq[[]uint32], training bool) error {
	c := s.c
	s.dump.training = training
	st := c.Cache.Stats()
	if s.inherited = s.inherit(st); s.inherited != nil {
		s.dump.saved = st.Saved
	}
	s.dump.inherits = s.inherited != nil
	if err := s.reserveSpace(st, updatable); err != nil {
		return fmt.Errorf("sparsetable: save the rows that are in no bucket yet: %w", err)
	}
	s.marked = true
	c.Cache.BeginSave()
	c.running.Store(s.dump)
	for refs := range updatable {
		s.dump.savePinned(refs)
	}
	s.dump.chargeFixed()
	return nil
}

// Write writes what Fix has fixed and commits it. It returns the committed snapshot.
func (s *Snapshot) Write(ctx context.Context) (catalog.Snapshot, error) {
	committed, err := s.writeAll(ctx)
	if err != nil {
		return catalog.Snapshot{}, errors.Join(err, s.abandon())
	}
	c := s.c
	c.IndexMu.Lock()
	s.pages.Done()
	c.IndexMu.Unlock()
	c.running.Store(nil)
	if err := s.dump.close(); err != nil { // the snapshot is committed nevertheless
		c.Logger.Warn("sparsetable: a snapshot is committed, but its file could not be closed", "error", err)
	}
	s.unreserve()
	c.shorten(ctx)
	c.snapshots.Add(1)
	c.savedEarly.Add(s.dump.counts.early)
	return committed, nil
}

func (s *Snapshot) writeAll(ctx context.Context) (none catalog.Snapshot, err error) {
	c, d := s.c, s.dump
	// The pages are written first, because a page that changes before it is written has to be
	// copied. They have no effect before they are committed.
	if err := s.writePages(ctx); err != nil {
		return none, err
	}
	if err := d.saveDirty(ctx.Err); err != nil {
		return none, err
	}
	if err := d.saveClean(ctx.Err); err != nil {
		return none, err
	}
	if err := d.finish(); err != nil {
		return none, err
	}
	d.chargeWritten()
	if err := c.files.Flush(ctx); err != nil {
		return none, err
	}
	record := s.catalogRecord()
	if err := s.commit.Commit(record); err != nil {
		s.unknown = errors.Is(err, catalog.ErrFailed)
		return none, err
	}
	record.ID, record.PageBytes = s.commit.ID(), s.commit.PageBytes() // it may already be dropped
	c.Copies.Update(false)
	c.rebase(record.Deltas)
	if err := d.removeEmpty(); err != nil {
		c.Logger.Warn("sparsetable: the empty file of a snapshot could not be removed", "error", err)
	}
	return record, nil
}

// catalogRecord is the snapshot's record for the catalog.
func (s *Snapshot) catalogRecord() catalog.Snapshot {
	r := catalog.Snapshot{
		Slots: s.slots, Rows: s.stored + s.dump.counts.fresh, Record: s.record,
		Counters: map[string]int64{
			counterNextFile: int64(s.state.NextFile), counterSeq: int64(s.state.Seq), counterStored: s.stored,
			counterDirs: int64(len(s.dump.parts)),
		},
		Deltas: s.inherited,
	}
	s.c.Table.PutCounters(r.Counters)
	for _, f := range s.state.Files {
		r.Files = append(r.Files, catalog.File{ID: f.File, Dir: f.Dir, Incarnation: f.Incarnation, Bytes: f.Bytes, LiveBytes: f.LiveBytes, Begun: f.Begun})
	}
	for _, p := range s.dump.parts {
		if p.bytes > 0 {
			r.Deltas = append(r.Deltas, s.ownDelta(p))
		}
	}
	return r
}

// ownDelta describes a file that the snapshot has written.
func (s *Snapshot) ownDelta(p *dumpPart) catalog.Delta {
	dirty, clean := p.count[deltafile.Dirty], p.count[deltafile.Clean]
	own := catalog.Delta{
		Dir: uint16(p.dir), Name: p.name, Bytes: p.bytes, Rows: dirty + clean, Snapshot: s.commit.ID(),
		DirtyBytes: p.dirtyBytes, DirtyRows: dirty, Seq: s.state.Seq,
	}
	for _, f := range s.state.Growing {
		own.Growing = append(own.Growing, catalog.FileEnd{File: f.File, Bytes: f.Bytes})
	}
	return own
}

func (s *Snapshot) writePages(ctx context.Context) error {
	var buf []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.c.IndexMu.Lock()
		page, data, ok := s.pages.Next(buf[:0])
		s.c.IndexMu.Unlock()
		s.c.tookPage()
		if !ok {
			return nil
		}
		buf = data
		if err := s.commit.PutPage(page, data); err != nil {
			return err
		}
	}
}

// abandon undoes what was done for a snapshot that failed. If the snapshot may be committed
// nevertheless, its files stay; the next Open finds out.
func (s *Snapshot) abandon() error {
	c := s.c
	var errs []error
	if s.unknown {
		c.keepFiles()
	}
	if s.commit != nil {
		errs = append(errs, s.commit.Abort())
	}
	if s.pages != nil {
		c.IndexMu.Lock()
		s.pages.Abort()
		c.IndexMu.Unlock()
		c.tookPage()
	}
	if s.dump != nil {
		// At the next snapshot, no row may be marked as saved by this one.
		if s.marked && !s.unknown {
			c.rebase(nil)
		}
		c.forgetOld()
		c.running.Store(nil)
		errs = append(errs, s.dump.close())
		if !s.unknown {
			errs = append(errs, s.dump.remove())
		}
	}
	s.unreserve()
	if s.held && !s.unknown {
		errs = append(errs, c.files.EndHold(s.commit.ID()))
	}
	return errors.Join(errs...)
}
