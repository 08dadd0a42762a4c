package bucketfile

import (
	"fmt"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// file is one bucket file. It is deleted as soon as it has no live bytes, no holders and no pins.
type file struct {
	set  *Set
	dir  *directory
	id   uint32
	name string
	// incarnation is a random number that distinguishes the file from others that had its number
	// before, or have it in a copy of the table. It is 0 in files of older versions.
	incarnation uint64
	begun       uint64 // the set's seq when the file was begun

	// handle is set by the directory's goroutine before the first byte is written.
	// Others use it only for bytes below written.
	handle blockio.File
	// written is the number of bytes on the device. Later bytes are in an append buffer, or do not
	// exist.
	written atomic.Int64

	// Under Set.mu:

	live    int64 // bytes of committed buckets that were not released
	holders int   // snapshots
	// pins counts the requests, append buffers, syncs and scans that use the file, plus 1 for the
	// file that a directory appends to.
	pins  int
	bytes int64 // size of the file, counted in the budget
	// valid is the length up to which the file has records: everything that was committed, or, in
	// files of an earlier run, everything that was durable.
	valid    int64
	ended    bool // nothing is appended any more; always true for files of an earlier run
	deleting bool // passed to the directory's goroutine for deletion

	undeleted bool // its deletion failed; used by that goroutine only
}

func (f *file) path() string { return f.dir.dev.Dir() + "/" + f.name }

func (f *file) corrupt(offset int64, reason string) error {
	return &CorruptionError{File: f.path(), Offset: offset, Reason: reason}
}

// corruptBucket is corrupt for the bucket of a slot.
func (f *file) corruptBucket(offset int64, slot uint32, reason string) error {
	return &CorruptionError{File: f.path(), Offset: offset, Bucket: true, Slot: slot, Reason: reason}
}

// seed of the checksum of a record at offset units.
func (f *file) seed(offset int64) uint32 {
	return seedOf(f.set.opts.Table, f.incarnation, f.id, offset)
}

func (f *file) closeHandle() {
	if f.handle != nil {
		// An error of close does not matter: what must be durable was synced.
		_ = f.handle.Close()
		f.handle = nil
	}
}

// unpin removes a pin, and has the file deleted if nothing else keeps it.
func (s *Set) unpin(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpinLocked(f)
}

// unpinLocked is unpin. REQUIRES: s.mu is held.
func (s *Set) unpinLocked(f *file) {
	if f.pins--; f.pins < 0 {
		panic(fmt.Sprintf("bucketfile: file %d unpinned too often", f.id))
	}
	s.dropIfDeadLocked(f)
}

// dropIfDeadLocked passes a file that nothing needs to its directory for deletion. REQUIRES: s.mu
// is held.
func (s *Set) dropIfDeadLocked(f *file) {
	if f.live != 0 || f.holders != 0 || f.pins != 0 || f.deleting {
		return
	}
	f.deleting = true
	delete(s.mu.files, f.id)
	f.dir.deletions.add(f)
	f.dir.wakeUp()
}

// findLocked returns the file of a location. REQUIRES: s.mu is held.
func (s *Set) findLocked(loc Location) (*file, error) {
	f := s.mu.files[loc.File()]
	if f == nil {
		return nil, fmt.Errorf("%w: location %v", ErrUnknownFile, loc)
	}
	if end := (loc.Offset() + int64(loc.Units())) * int64(s.unit); loc.Offset()*int64(s.unit) < fileHeaderBytes || end > f.valid {
		return nil, f.corrupt(loc.Offset()*int64(s.unit), fmt.Sprintf("location %v lies outside the file's %d bytes", loc, f.valid))
	}
	return f, nil
}

// Release says that the bucket at loc is superseded: the table no longer refers to it, although
// snapshots may still do so. It ignores location 0.
func (s *Set) Release(loc Location) error {
	if loc == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.findLocked(loc)
	if err != nil {
		return fmt.Errorf("bucketfile: release: %w", err)
	}
	n := int64(loc.Units()) * int64(s.unit)
	if n > f.live {
		return fmt.Errorf("bucketfile: release: location %v has %d bytes, but file %s has only %d live bytes: a bucket was released twice", loc, n, f.path(), f.live)
	}
	f.live -= n
	f.dir.room.live.Add(-n)
	s.dropIfDeadLocked(f)
	return nil
}

// Hold keeps every file with live buckets for a snapshot, until EndHold, and returns the state that
// goes with the snapshot's locations. It must be called at the instant at which the locations are
// captured. At that instant, the predecessors of all committed buckets must have been released.
// Flush must be called before the snapshot is committed.
func (s *Set) Hold(snapshot uint64) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return State{}, ErrClosed
	}
	if s.mu.holds[snapshot] != nil {
		return State{}, fmt.Errorf("bucketfile: snapshot %d holds files already", snapshot)
	}
	held := []*file{}
	for _, f := range s.sortedFilesLocked() {
		if f.live > 0 {
			f.holders++
			held = append(held, f)
		}
	}
	s.mu.holds[snapshot] = held
	return s.stateLocked(snapshot), nil
}

// EndHold ends the Hold of a snapshot. It must be called after the catalog has durably dropped the
// snapshot, or if the snapshot could not be committed.
func (s *Set) EndHold(snapshot uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.mu.holds[snapshot]
	if held == nil {
		return fmt.Errorf("bucketfile: snapshot %d holds no files", snapshot)
	}
	delete(s.mu.holds, snapshot)
	for _, f := range held {
		f.holders--
		s.dropIfDeadLocked(f)
	}
	return nil
}

// Keep keeps the files that a snapshot holds, even after EndHold, until release is called. ok is
// false if the snapshot no longer holds files.
func (s *Set) Keep(snapshot uint64) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.mu.holds[snapshot]
	if held == nil || s.mu.closed {
		return nil, false
	}
	for _, f := range held {
		f.holders++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mu.closed {
			return
		}
		for _, f := range held {
			f.holders--
			s.dropIfDeadLocked(f)
		}
	}, true
}
