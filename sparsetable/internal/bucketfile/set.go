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
	// Table is a random number that distinguishes the table's files from those of other tables in
	// the same directories.
	Table uint64
	// RowWords is the number of 4-byte words of a row, 1 to 65535.
	RowWords int
	// Format says how the words are encoded, as a sparsetable.ValueFormat. It is written into files
	// and buckets, for readers that have nothing else of a table.
	Format uint8
	// Devices are the directories. The caller closes them, after the Set. Slots are
	// spread over them by slot number.
	Devices []blockio.Device
	// BudgetBytes bounds, for each of Devices, the bytes of the directory's bucket files and of
	// other files charged to it (see Set.Charge). 0, or a missing element, means that there is no
	// limit.
	BudgetBytes []int64
	// ReserveBytes is the free space that all but urgent appends leave in each file system; 0
	// stands for 64 MiB, a negative number for none.
	ReserveBytes int64
	// UrgentBytes is the part of each budget that only urgent appends, those of compaction, may
	// use; 0 stands for one file, a negative number for none.
	UrgentBytes int64
	// FileBytes is the size at which a file is ended and the next one begun; 0 stands for 128 MiB.
	// Without a budget, files are larger in a directory that would otherwise have very many. Small
	// files allow compaction in small steps. A table can have 2^24 files at a time, which is 2 PiB
	// with files of 128 MiB.
	FileBytes int64
	// MinFileBytes is the size below which files do not get if a directory's live buckets take less
	// than 16 files. Files smaller than FileBytes waste less space, because dead space in the file
	// that is being appended to cannot be freed. 0 stands for FileBytes.
	MinFileBytes int64
	// BufferBytes is the size of an append buffer, which is written to the device at
	// once; 0 stands for 1 MiB. A bucket cannot be larger.
	BufferBytes int
	// Buffers is the number of append buffers that a directory may have: one is being filled, and
	// the others wait to be written. 0 stands for 3. Begin waits when all are in use.
	Buffers int
	// MergeBytes is the largest gap between two buckets that are read together, including the gap,
	// to save a read. 0 stands for 8 KiB; with a negative number no reads are merged. On the
	// virtual NVMe device on which this was measured, reading 12 KiB more took as long as another
	// read.
	MergeBytes int64
	// Pool provides the buffers of reads; if it is nil, Open makes one. Its unit must be a multiple
	// of the devices' units. Append buffers do not come from it, so that a write cannot fail
	// because reads have taken all of it.
	Pool *blockio.Pool
	// UnitBytes is the unit of a new table; 0 stands for the largest unit of the devices. A table
	// keeps its unit. On devices with a larger unit, a read also covers bytes around a bucket.
	UnitBytes int
	// ReadOnly means that unreferenced files are not deleted and nothing may be appended.
	ReadOnly bool
	// lastFile is the largest number that a file may have; 0 stands for the constant
	// lastFile. Tests make it small.
	lastFile uint32
	// Logger receives what cannot be returned to a caller: deletions that fail, and
	// writes that are tried again. nil stands for slog.Default().
	Logger *slog.Logger
}

// validate sets defaults and returns every fault.
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
	if u := o.UnitBytes; u < 512 || u > fileHeaderBytes || u&(u-1) != 0 {
		fail("unit of %d bytes, want a power of two from 512 to %d", u, fileHeaderBytes)
	}
	// Writes are whole blocks of writeAlign, whatever the unit; reads are aligned
	// to the device.
	if largest > writeAlign {
		fail("a device's unit of %d bytes, want at most %d", largest, writeAlign)
	}
	if o.Pool != nil && o.Pool.Unit() < largest {
		fail("a pool of unit %d, want at least the devices' %d", o.Pool.Unit(), largest)
	}
	setDefault(&o.ReserveBytes, 64<<20)
	setDefault(&o.FileBytes, 128<<20)
	setDefault(&o.UrgentBytes, o.FileBytes)
	setDefault(&o.MinFileBytes, o.FileBytes)
	o.MinFileBytes = min(max(o.MinFileBytes, int64(o.BufferBytes)), o.FileBytes)
	setDefault(&o.BufferBytes, 1<<20)
	setDefault(&o.Buffers, 3)
	setDefault(&o.MergeBytes, 8<<10)
	setDefault(&o.lastFile, lastFile)
	o.ReserveBytes, o.UrgentBytes = max(o.ReserveBytes, 0), max(o.UrgentBytes, 0)
	if o.BufferBytes < 2*fileHeaderBytes || o.BufferBytes%fileHeaderBytes != 0 {
		fail("append buffers of %d bytes, want a multiple of %d, at least two", o.BufferBytes, fileHeaderBytes)
	}
	if limit := MaxFileBytes(o.UnitBytes); o.FileBytes < int64(o.BufferBytes) || o.FileBytes > limit {
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

func setDefault[T int | int64 | uint32](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// A Set manages the bucket files of one table.
type Set struct {
	opts    Options
	unit    int
	align   int // the largest unit of the devices
	pool    *blockio.Pool
	ownPool bool
	appends *blockio.Pool // for append buffers, whose number Options.Buffers bounds
	dirs    []*directory
	seq     atomic.Uint64
	opened  map[uint32]uint64 // of each file that the states of Open name: its FileState.Begun

	mu struct {
		sync.Mutex
		files    map[uint32]*file
		nextFile uint32 // the first number to try for a new file
		// holds are the files of each snapshot.
		holds  map[uint64][]*file
		closed bool
	}
}

// Open opens the files of current, the snapshot from which the table continues, and of the other
// kept snapshots, and deletes every other bucket file of the table. All these snapshots hold their
// files. The zero State stands for an empty table. The directories may come in another order than
// before, and there may be new ones.
func Open(ctx context.Context, current State, kept []State, opts Options) (*Set, error) {
	if err := opts.validate(append([]State{current}, kept...)); err != nil {
		return nil, err
	}
	s := &Set{opts: opts, unit: opts.UnitBytes, pool: opts.Pool, align: alignOf(opts.Devices)}
	s.appends = blockio.NewPool(s.align, 0)
	if s.pool == nil {
		s.pool, s.ownPool = blockio.NewPool(s.align, 0), true
	}
	s.mu.files = map[uint32]*file{}
	s.mu.holds = map[uint64][]*file{}
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

// alignOf returns the alignment of buffers that all of the devices accept.
func alignOf(devices []blockio.Device) int {
	align := 512
	for _, d := range devices {
		align = max(align, d.Unit())
	}
	return align
}

// UrgentBytes returns the part of each budget that is for urgent appends.
func (s *Set) UrgentBytes() int64 { return s.opts.UrgentBytes }

// EmptyingBytes is how much space emptying a file of a directory may take: the part for urgent
// appends, or the size of the files of a large directory without a budget.
func (s *Set) EmptyingBytes(directory int) int64 {
	return max(s.opts.UrgentBytes, s.dirs[directory].fileLimit())
}

// Unit returns the bytes of one unit of a Location.
func (s *Set) Unit() int { return s.unit }

// Close stops the Set's goroutines and closes its files. What was not flushed is lost, but no
// snapshot refers to it. All requests must be finished, and all Appenders committed or aborted,
// before Close. A second Close does nothing.
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

// directoryOf returns the directory to which the buckets of a slot are appended.
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
