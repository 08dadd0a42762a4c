package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/contract"
)

const (
	sortEntryBytes = 16
	// A table of up to minSortRows rows is sorted at once. Larger tables sort a 16th of their rows
	// at a time, so they scan the keys some 17 times, which is a small part of the time for writing
	// the rows.
	minSortRows = 4096
	sortShare   = 16
)

// sortEntry is a row to be written. Its size is sortEntryBytes.
type sortEntry struct {
	key uint64
	ref uint32
}

// Snapshot implements Table.
func (t *Table) Snapshot(ctx context.Context, record []byte) (*contract.PendingSnapshot, error) {
	if t.readOnly {
		return nil, contract.ErrReadOnly
	}
	if t.dir.path == "" {
		return nil, contract.ErrNoDirectory
	}
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	if err := t.saving.Acquire(ctx); err != nil {
		t.inFlight.End()
		return nil, err
	}
	start := time.Now()
	t.mu.Lock()
	id := t.mu.nextID
	t.mu.nextID++
	c := newCapture(t.mu.slabs)
	t.mu.snap = c
	err := c.securePinned(t)
	t.mu.Unlock()
	if err != nil {
		err = errors.Join(err, c.close(t))
		t.saving.Release()
		t.inFlight.End()
		return nil, err
	}
	p, end := contract.NewPendingSnapshot()
	s := &snapshotJob{t: t, c: c, end: end, id: id, record: bytes.Clone(record)}
	if c.inline {
		t.log.Info("training pauses until the snapshot is written, because there is too little memory to copy the pinned rows", slog.Uint64("id", id))
		s.run(ctx)
	} else {
		panics.Go("writing a snapshot of the table", func() { s.run(ctx) }) // Close waits for it because its last act is to end its call
	}
	t.log.Debug("snapshot fixed", slog.Uint64("id", id), slog.Duration("stall", time.Since(start)))
	return p, nil
}

// snapshotJob writes one snapshot.
type snapshotJob struct {
	t       *Table
	c       *capture
	end     func(contract.SnapshotInfo, error)
	id      uint64
	record  []byte
	ctx     context.Context
	w       *snapshotWriter
	entries []sortEntry
}

func (j *snapshotJob) run(ctx context.Context) {
	t := j.t
	j.ctx = ctx
	info, err := t.dir.create(j.id, t.layout, j.record, j.fill)
	err = errors.Join(err, j.c.close(t))
	if err != nil {
		info = contract.SnapshotInfo{}
	}
	t.mu.Lock()
	if err == nil {
		t.mu.stats.Snapshots++
	}
	if j.w != nil {
		t.mu.stats.SnapshotBytes += j.w.bytes
	}
	t.mu.Unlock()
	t.saving.Release()
	j.end(info, err)
	t.inFlight.End()
}

// fill writes all rows of the capture in ascending key order. Instead of sorting all references at
// once, it works through key ranges that hold a bounded number of rows.
func (j *snapshotJob) fill(w *snapshotWriter) error {
	j.w = w
	rows, err := j.settlePlaceholders()
	if err != nil {
		return err
	}
	j.t.mu.Lock()
	capacity := len(j.t.mu.slabs.rows) << j.t.mu.slabs.shift
	j.t.mu.Unlock()
	j.entries = make([]sortEntry, 0, max(minSortRows, capacity/sortShare))
	return j.writeRange(0, 64, rows)
}

// settlePlaceholders removes placeholders and free rows from the capture and returns the number of
// remaining rows.
func (j *snapshotJob) settlePlaceholders() (rows int64, err error) {
	s := j.t.mu.slabs
	err = j.each(func(_ uint64, ref uint32, mark *uint32) {
		if *mark == markOpen && !s.trained(ref) {
			*mark = markSettled
			return
		}
		rows++
	})
	return rows, err
}

// each calls fn, under the mutex, for every row of the capture that is not settled.
func (j *snapshotJob) each(fn func(key uint64, ref uint32, mark *uint32)) error {
	for from := uint64(1); from < j.c.end; from += scanChunk {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		j.t.mu.Lock()
		s := j.t.mu.slabs
		for r := from; r < min(from+scanChunk, j.c.end); r++ {
			ref := uint32(r)
			if mark := s.mark(ref); *mark != markSettled {
				fn(s.key(ref), ref, mark)
			}
		}
		j.t.mu.Unlock()
	}
	return nil
}

// A range of keys that holds too many rows is divided into 2^rangeBits parts.
const rangeBits = 12

// writeRange writes the rows with keys in [lo, lo + 2^width). There are rows of them.
func (j *snapshotJob) writeRange(lo uint64, width uint, rows int64) error {
	limit := int64(cap(j.entries))
	if rows <= limit {
		return j.writeKeys(lo, lo+(1<<width-1), rows) // 1<<64 is 0
	}
	shift := width - min(width, rangeBits)
	counts := make([]int64, 1<<(width-shift))
	err := j.each(func(key uint64, _ uint32, _ *uint32) {
		if part := (key - lo) >> shift; key >= lo && part < uint64(len(counts)) {
			counts[part]++
		}
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(counts); {
		from, sum := i, counts[i]
		for i++; i < len(counts) && sum+counts[i] <= limit; i++ {
			sum += counts[i]
		}
		first := lo + uint64(from)<<shift
		if sum > limit { // one part alone
			err = j.writeRange(first, shift, sum)
		} else {
			err = j.writeKeys(first, lo+uint64(i)<<shift-1, sum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeKeys writes the rows with keys in [first, last]. There are rows of them.
func (j *snapshotJob) writeKeys(first, last uint64, rows int64) error {
	if rows == 0 {
		return nil
	}
	j.entries = j.entries[:0]
	err := j.each(func(key uint64, ref uint32, _ *uint32) {
		if first <= key && key <= last {
			j.entries = append(j.entries, sortEntry{key, ref})
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(j.entries, func(a, b sortEntry) int { return cmp.Compare(a.key, b.key) })
	for rest := j.entries; len(rest) > 0; {
		n := j.encode(rest)
		rest = rest[n:]
		if j.w.full() {
			if err := j.w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeChunk is the number of rows handled per acquisition of the mutex, which takes some 20 µs.
const encodeChunk = 256

// encode adds the next rows to the block and returns their number.
func (j *snapshotJob) encode(entries []sortEntry) int {
	j.t.mu.Lock()
	defer j.t.mu.Unlock()
	s := j.t.mu.slabs
	n := 0
	for n < min(encodeChunk, len(entries)) && !j.w.full() {
		e := entries[n]
		mark := s.mark(e.ref)
		row := s.row(e.ref)
		if *mark >= markSaved {
			row = j.c.copied(*mark, s.words)
		}
		j.w.add(e.key, row)
		*mark = markSettled
		n++
	}
	return n
}

// HoldFile opens the file of a snapshot, so that it can be read even after it was deleted.
func (t *Table) HoldFile(id uint64) (*os.File, error) {
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	if t.dir.path == "" {
		return nil, t.dir.missing(id)
	}
	f, err := os.Open(t.dir.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, t.dir.missing(id)
	}
	return f, err
}

// Snapshots implements Table.
func (t *Table) Snapshots() ([]contract.SnapshotInfo, error) {
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	return t.dir.infos()
}

// DropSnapshot implements Table.
func (t *Table) DropSnapshot(id uint64) error {
	if t.readOnly {
		return contract.ErrReadOnly
	}
	if err := t.inFlight.Begin(); err != nil {
		return err
	}
	defer t.inFlight.End()
	return t.dir.drop(id)
}
