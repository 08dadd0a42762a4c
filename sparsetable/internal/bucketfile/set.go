package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// Options of Open.
type Options struct {
	// Table is a random number that tells the table's files from those of other
	// tables in the same directories.
	Table uint64
	// RowWords is the number of 4-byte words of a row, 1 to 65535.
	RowWords int
	// Devices are the directories, which stay the caller's to close, after the
	// Set. Slots are spread over them by slot number.
	Devices []blockio.Device
	// BudgetBytes bounds the bucket files of each directory, with what it is
	// charged, in the order of Devices; 0 or missing is no limit.
	BudgetBytes []int64
	// ReserveBytes is the free space that appends leave in each file system,
	// but for urgent ones; 0 is 64 MiB, negative is none.
	ReserveBytes int64
	// UrgentBytes is the part of each budget that only urgent appends, those of
	// compaction, may use; 0 is one file, negative is none.
	UrgentBytes int64
	// FileBytes is the size at which a file is ended and the next one begun;
	// 0 is 128 MiB. Small files are emptied in small steps; 2^24 of them can be
	// written in a table's life, so 128 MiB is 2 PiB.
	FileBytes int64
	// MinFileBytes lets files be smaller than FileBytes, but not than this, as
	// long as a directory's live buckets take less than 16 of them: what is dead
	// in the file that is appended to cannot be made use of. 0 is FileBytes.
	MinFileBytes int64
	// BufferBytes is the size of an append buffer, a write to the device; 0 is
	// 1 MiB. It bounds a bucket.
	BufferBytes int
	// Buffers is how many append buffers a directory may have, one being filled
	// and the others waiting to be written; 0 is 3. Begin waits when all are
	// taken.
	Buffers int
	// MergeBytes is the gap between two buckets that is read along with them to
	// save a read; 0 is 8 KiB, negative merges nothing. On the virtual NVMe that
	// this was measured on, 12 KiB more cost as much as another read.
	MergeBytes int64
	// Pool is where the buffers of reads come from; nil makes one. Its unit must
	// be a multiple of the devices' units. Append buffers lie outside of it: a
	// write must not fail because reads have taken everything.
	Pool *blockio.Pool
	// UnitBytes of a new table; 0 is the largest unit of the devices. A table
	// keeps its unit.
	UnitBytes int
	// ReadOnly leaves files that nothing refers to where they are. Nothing may be
	// appended.
	ReadOnly bool
	// Logger hears of what has no caller to be told: deletions that fail, writes
	// that are tried again. nil is slog.Default().
	Logger *slog.Logger
}

// validate fills in defaults and reports every fault.
func (o *Options) validate(states []State) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("bucketfile: "+format, args...)) }
	if len(o.Devices) == 0 {
		fail("no devices")
	}
	if o.RowWords < 1 || o.RowWords > 65535 {
		fail("rows of %d words, want 1 to 65535", o.RowWords)
	}
	largest := 0
	for _, d := range o.Devices {
		largest = max(largest, d.Unit())
	}
	if o.UnitBytes == 0 {
		o.UnitBytes = max(largest, 512)
	}
	for _, st := range states {
		if st.UnitBytes != 0 {
			o.UnitBytes = st.UnitBytes
		}
	}
	if u := o.UnitBytes; u < largest || u > fileHeaderBytes || u&(u-1) != 0 {
		fail("unit of %d bytes, want a power of two from the devices' %d to %d", u, largest, fileHeaderBytes)
	}
	setDefault(&o.ReserveBytes, 64<<20)
	setDefault(&o.FileBytes, 128<<20)
	setDefault(&o.UrgentBytes, o.FileBytes)
	setDefault(&o.MinFileBytes, o.FileBytes)
	o.MinFileBytes = min(max(o.MinFileBytes, int64(o.BufferBytes)), o.FileBytes)
	setDefault(&o.BufferBytes, 1<<20)
	setDefault(&o.Buffers, 3)
	setDefault(&o.MergeBytes, 8<<10)
	o.ReserveBytes, o.UrgentBytes = max(o.ReserveBytes, 0), max(o.UrgentBytes, 0)
	if o.BufferBytes < 2*fileHeaderBytes || o.BufferBytes%fileHeaderBytes != 0 {
		fail("append buffers of %d bytes, want a multiple of %d, at least two", o.BufferBytes, fileHeaderBytes)
	}
	if limit := int64(maxOffset) * int64(o.UnitBytes); o.FileBytes < int64(o.BufferBytes) || o.FileBytes > limit {
		fail("files of %d bytes, want from a buffer's %d to %d", o.FileBytes, o.BufferBytes, limit)
	}
	if o.Buffers < 2 {
		fail("%d append buffers, want at least 2", o.Buffers)
	}
	if isBigEndian {
		fail("rows are little-endian words in place; this processor is big-endian")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(errs...)
}

func setDefault[T int | int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// A Set is the bucket files of one table.
type Set struct {
	opts    Options
	unit    int
	pool    *blockio.Pool
	ownPool bool
	appends *blockio.Pool // of append buffers, as many as Options.Buffers allows
	dirs    []*directory
	seq     atomic.Uint64

	mu struct {
		sync.Mutex
		files    map[uint32]*file
		nextFile uint32
		// holds are the files of each snapshot.
		holds  map[uint64][]*file
		closed bool
	}
}

// Open opens the files of the snapshot that the table returns to, current, and
// of other snapshots that are kept, and deletes every other bucket file of the
// table. All these snapshots hold their files. The zero State is an empty
// table. The directories may come in another order than before, and there may
// be new ones.
func Open(ctx context.Context, current State, kept []State, opts Options) (*Set, error) {
	if err := opts.validate(append([]State{current}, kept...)); err != nil {
		return nil, err
	}
	s := &Set{opts: opts, unit: opts.UnitBytes, pool: opts.Pool, appends: blockio.NewPool(opts.UnitBytes, 0)}
	if s.pool == nil {
		s.pool, s.ownPool = blockio.NewPool(s.unit, 0), true
	}
	s.mu.files = map[uint32]*file{}
	s.mu.holds = map[uint64][]*file{}
	s.mu.nextFile = 1
	for i, dev := range opts.Devices {
		budget := int64(0)
		if i < len(opts.BudgetBytes) {
			budget = opts.BudgetBytes[i]
		}
		s.dirs = append(s.dirs, newDirectory(s, i, dev, budget))
	}
	if err := s.load(ctx, append([]State{current}, kept...)); err != nil {
		for _, f := range s.mu.files {
			f.closeHandle()
		}
		s.closePools()
		return nil, err
	}
	for _, d := range s.dirs {
		d.running.Go(d.run)
	}
	return s, nil
}

// UrgentBytes returns the part of each budget that is for urgent appends.
func (s *Set) UrgentBytes() int64 { return s.opts.UrgentBytes }

// Unit returns the bytes of one unit of a Location.
func (s *Set) Unit() int { return s.unit }

// Close ends the Set's goroutines and closes its files. What was not flushed is
// dropped: no snapshot refers to it. Requests must be finished and Appenders
// committed or aborted before. A second Close does nothing.
func (s *Set) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil
	}
	s.mu.closed = true
	s.mu.Unlock()
	for _, d := range s.dirs {
		d.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.mu.files {
		f.closeHandle()
	}
	s.closePools()
	return nil
}

func (s *Set) closePools() {
	s.appends.Close()
	if s.ownPool {
		s.pool.Close()
	}
}

// directoryOf returns where the buckets of a slot are appended.
func (s *Set) directoryOf(slot uint32) *directory {
	return s.dirs[int(slot)%len(s.dirs)]
}

// sortedFilesLocked returns the files in the order of their numbers. REQUIRES:
// s.mu is held.
func (s *Set) sortedFilesLocked() []*file {
	files := make([]*file, 0, len(s.mu.files))
	for _, f := range s.mu.files {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *file) int { return int(a.id) - int(b.id) })
	return files
}
