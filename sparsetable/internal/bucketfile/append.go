package bucketfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// An Appender encodes one bucket in place. It belongs to one goroutine; Commit
// or Abort ends it.
type Appender struct {
	dir      *directory
	buf      *appendBuffer
	at       int // in buf.mem
	size     int // reserved bytes, in whole units
	slot     uint32
	rows     int
	maxRows  int
	finished bool
}

// Begin reserves room for a bucket of up to maxRows rows, at least one. Commit gives unused room
// back if no other bucket was begun in the directory meanwhile; otherwise it becomes dead space. So
// maxRows should be a good guess.
//
// Begin waits while all append buffers wait to be written. If there is no room, it also waits for
// pending deletions of files. It returns a NoSpaceError if the bucket does not fit the directory's
// budget or its file system, ErrTooLarge if the bucket fits no buffer, and the error of an earlier
// write that still fails. Only urgent appends, those of compaction, may use the last part of the
// budget.
//
// While an Appender is open, its buffer cannot be written. So callers must not call Flush then, and
// must not begin another bucket, which might wait for that buffer.
func (s *Set) Begin(slot uint32, maxRows int, urgent bool) (Appender, error) {
	if maxRows < 1 {
		panic(fmt.Sprintf("bucketfile: bucket of at most %d rows", maxRows))
	}
	units := unitsOf(bucketBytes(maxRows, s.opts.RowWords), s.unit)
	size := units * s.unit
	if units > MaxUnits || size > s.opts.BufferBytes-fileHeaderBytes || maxRows > math.MaxInt32/(keyBytes+4*s.opts.RowWords) {
		return Appender{}, fmt.Errorf("%w: slot %d with %d rows would take %d bytes, but a location can describe %d and an append buffer holds %d: split the slot",
			ErrTooLarge, slot, maxRows, size, MaxUnits*s.unit, s.opts.BufferBytes-fileHeaderBytes)
	}
	d := s.directoryOf(slot)
	d.mu.Lock()
	defer d.mu.Unlock()
	waited := false
	mayRetry := func() bool { // true once, if files were deleted meanwhile
		first := !waited
		waited = true
		return first && d.awaitDeletionsLocked()
	}
	for {
		if err := d.errLocked(); err != nil {
			return Appender{}, fmt.Errorf("bucketfile: append slot %d: %w", slot, err)
		}
		if err := d.budgetLocked(size, urgent); err != nil {
			if mayRetry() {
				continue
			}
			return Appender{}, err
		}
		if b := d.appends.filled; b != nil && b.used+size <= len(b.mem) {
			break
		}
		d.sealLocked()
		if len(d.appends.queue) < s.opts.Buffers {
			if err := d.openBufferLocked(urgent); err != nil {
				if errors.Is(err, ErrNoSpace) && mayRetry() {
					continue
				}
				return Appender{}, err
			}
			continue
		}
		d.cond.Wait()
	}
	b := d.appends.filled
	a := Appender{dir: d, buf: b, at: b.used, size: size, slot: slot, maxRows: maxRows}
	b.used += size
	b.open++
	return a, nil
}

// AwaitBuffer waits until Begin, for a bucket of a slot with up to maxRows rows, need not wait for
// a buffer to be written. That holds until another bucket is begun. AwaitBuffer also returns on an
// error of the device, which Begin then returns.
func (s *Set) AwaitBuffer(slot uint32, maxRows int) {
	size := unitsOf(bucketBytes(maxRows, s.opts.RowWords), s.unit) * s.unit
	d := s.directoryOf(slot)
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.fullLocked(size) && d.errLocked() == nil {
		d.cond.Wait()
	}
}

// fullLocked reports whether size more bytes fit no buffer, neither the one being filled nor a new
// one. REQUIRES: d.mu is held.
func (d *directory) fullLocked(size int) bool {
	if b := d.appends.filled; b != nil && b.used+size <= len(b.mem) {
		return false
	}
	return d.appends.buffers() >= d.set.opts.Buffers
}

// budgetLocked checks that size more bytes fit the directory's budget. REQUIRES:
// d.mu is held.
func (d *directory) budgetLocked(size int, urgent bool) error {
	r := &d.room
	if r.budget == 0 {
		return nil
	}
	// The bytes of the buffer being filled are added to room.used only when it is sealed.
	used, other, reserve := r.used.Load()+d.appends.filledBytes(), r.charged.Load(), int64(0)
	if !urgent {
		reserve = d.set.opts.UrgentBytes
	}
	// A new buffer may come with a file header, and its end is padded.
	if used+other+int64(size)+fileHeaderBytes+writeAlign > r.budget-reserve {
		return &NoSpaceError{
			Dir: d.dev.Dir(), NeedBytes: int64(size), UsedBytes: used, OtherBytes: other, BudgetBytes: r.budget,
			FreeBytes: -1, ReserveBytes: reserve,
		}
	}
	return nil
}

// freeLocked checks that the file system of the directory has room for one more buffer.
// REQUIRES: d.mu is held.
func (d *directory) freeLocked(urgent bool) error {
	s := d.set
	free, err := d.dev.Free()
	if err != nil {
		return fmt.Errorf("bucketfile: free space of %s: %w", d.dev.Dir(), err)
	}
	free -= d.appends.queuedBytes()
	reserve := int64(0)
	if !urgent {
		reserve = s.opts.ReserveBytes
	}
	if free-reserve < int64(s.opts.BufferBytes) {
		return &NoSpaceError{
			Dir: d.dev.Dir(), NeedBytes: int64(s.opts.BufferBytes), UsedBytes: d.room.used.Load(), BudgetBytes: d.room.budget,
			FreeBytes: max(free, 0), ReserveBytes: reserve,
		}
	}
	return nil
}

// CheckRoom returns a NoSpaceError if not even one bucket can be appended, without urgency, to some
// directory.
func (s *Set) CheckRoom() error {
	for _, d := range s.dirs {
		d.mu.Lock()
		err := d.budgetLocked(s.unit, false)
		if err == nil {
			err = d.freeLocked(false)
		}
		d.mu.Unlock()
		if errors.Is(err, ErrNoSpace) { // an append reports other errors
			return err
		}
	}
	return nil
}

// openBufferLocked opens a buffer to fill, in a new file if the last one is full. REQUIRES: d.mu is
// held; filled is nil; the queue has room.
func (d *directory) openBufferLocked(urgent bool) error {
	s := d.set
	if err := d.freeLocked(urgent); err != nil {
		return err
	}
	mem, err := s.appends.Get(s.opts.BufferBytes)
	if err != nil {
		return fmt.Errorf("bucketfile: append buffer: %w", err)
	}
	a := &d.appends
	f := a.file
	if f == nil || a.end+int64(len(mem)) > d.fileLimit() {
		if f, err = s.newFile(d); err != nil {
			s.appends.Put(mem)
			return err
		}
		if a.file != nil {
			s.endFile(a.file)
		}
		a.file, a.end = f, 0
	}
	a.opened++
	a.filled = &appendBuffer{file: f, number: a.opened, base: a.end, mem: mem}
	if a.end == 0 {
		s.headerOf(f).seal(mem)
		a.filled.used = fileHeaderBytes
	}
	s.mu.Lock()
	f.pins++
	s.mu.Unlock()
	return nil
}

// filesPerLive is the number of files into which the live bytes of a directory are divided, as long
// as the files are then smaller than their full size.
const filesPerLive = 16

// manyFiles bounds the number of files into which the live bytes of all directories are divided,
// but each directory may have filesPerLive of them. Each file has a descriptor, and the search for
// a file to empty examines all of them. A table that grows has some more files, from the time when
// it was smaller.
const manyFiles = 256

// fileLimit is the size at which the next file is begun.
func (d *directory) fileLimit() int64 {
	o, live := &d.set.opts, d.room.live.Load()
	limit := min(max(live/filesPerLive, o.MinFileBytes), o.FileBytes)
	if d.room.budget == 0 { // with a budget, the part reserved for emptying a file must be as large as files are
		files := max(manyFiles/int64(len(d.set.dirs)), filesPerLive)
		limit = max(limit, min(live/files, MaxFileBytes(d.set.unit)))
	}
	return limit
}

// newFile returns the description of a new file, pinned because d appends to it. The directory's
// goroutine creates the file itself with its first write.
func (s *Set) newFile(d *directory) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := s.takeNumberLocked()
	if err != nil {
		return nil, err
	}
	f := &file{set: s, dir: d, id: id, incarnation: newIncarnation(), begun: s.seq.Load(), pins: 1, valid: fileHeaderBytes}
	f.name = fileName(s.opts.Table, id, f.incarnation)
	s.mu.files[id] = f
	return f, nil
}

// endFile records that nothing will be appended to f any more.
func (s *Set) endFile(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ended = true
	s.unpinLocked(f)
}

// Put adds a row. row has the Set's RowWords words and is copied.
func (a *Appender) Put(key uint64, row []float32) {
	words := a.dir.set.opts.RowWords
	if a.rows == a.maxRows || len(row) != words || a.finished {
		panic(fmt.Sprintf("bucketfile: put row %d of at most %d, of %d words, want %d; the appender is finished: %v", a.rows, a.maxRows, len(row), words, a.finished))
	}
	entry := a.buf.mem[a.at+bucketBytes(a.rows, words):][:keyBytes+4*words]
	binary.LittleEndian.PutUint64(entry, key)
	copy(entry[keyBytes:], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(row))), 4*words))
	a.rows++
}

// Commit ends the bucket and returns its location. The bucket counts as live until it
// is released. A bucket without rows is not stored; its location is 0.
func (a *Appender) Commit() (Location, error) {
	if a.finished {
		return 0, ErrReleased
	}
	if a.rows == 0 {
		a.Abort()
		return 0, nil
	}
	s, b := a.dir.set, a.buf
	offset := (b.base + int64(a.at)) / int64(s.unit)
	units := unitsOf(bucketBytes(a.rows, s.opts.RowWords), s.unit)
	loc := makeLocation(b.file.id, offset, units)
	sealBucket(b.mem[a.at:a.at+units*s.unit], b.file.seed(offset), a.slot, a.rows, s.opts.RowWords, s.opts.Format, s.seq.Add(1))

	a.dir.mu.Lock()
	defer a.dir.mu.Unlock()
	s.mu.Lock()
	b.file.live += int64(units * s.unit)
	a.dir.room.live.Add(int64(units * s.unit))
	b.file.valid = max(b.file.valid, b.base+int64(a.at+units*s.unit))
	s.mu.Unlock()
	a.finishLocked(units * s.unit)
	return loc, nil
}

// Abort discards the bucket. After Commit it does nothing, so it can be deferred.
func (a *Appender) Abort() {
	if a.finished {
		return
	}
	a.dir.mu.Lock()
	defer a.dir.mu.Unlock()
	a.finishLocked(0)
}

// finishLocked keeps the first keep of the reserved bytes. It gives the others back or makes them a
// filler. REQUIRES: dir.mu is held.
func (a *Appender) finishLocked(keep int) {
	b, unit := a.buf, a.dir.set.unit
	a.finished = true
	if rest := a.size - keep; rest > 0 {
		from := a.at + keep
		if !b.sealed && b.used == a.at+a.size {
			b.used = from
		} else {
			sealFiller(b.mem[from:from+rest], b.file.seed((b.base+int64(from))/int64(unit)), unit)
		}
	}
	b.open--
	if b.sealed && b.open == 0 {
		a.dir.wakeUp()
	}
}
