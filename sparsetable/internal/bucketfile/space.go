package bucketfile

import (
	"errors"
	"fmt"
	"iter"
)

// Space is the space that the bucket files take.
type Space struct {
	Files       int
	TotalBytes  int64 // headers, padding and dead buckets included
	LiveBytes   int64 // of buckets that the table refers to
	HeldBytes   int64 // of files that snapshots hold
	KeptBytes   int64 // of those, files without live buckets, which only snapshots need
	DyingBytes  int64 // of files that nothing refers to, deleted when reads in flight end
	OtherBytes  int64 // of other files, see Set.Charge
	BudgetBytes int64 // for all of them; 0: no limit
}

// NeededBytes is the size of the files that the table itself needs, without those that only
// snapshots need and those that are to be deleted.
func (sp Space) NeededBytes() int64 { return sp.TotalBytes - sp.KeptBytes - sp.DyingBytes }

// Amplification returns NeededBytes / LiveBytes, or 0 for an empty table. Other files do not count,
// because compaction cannot shrink them.
func (sp Space) Amplification() float64 {
	if sp.LiveBytes == 0 {
		return 0
	}
	return float64(sp.NeededBytes()) / float64(sp.LiveBytes)
}

// Space returns the space of all directories together, and of each in the order of Options.Devices.
// The total of a directory includes files that are to be deleted.
func (s *Set) Space() (all Space, each []Space) {
	each = make([]Space, len(s.dirs))
	counted := make([]int64, len(s.dirs)) // of files that are not being deleted
	s.mu.Lock()
	for _, f := range s.mu.files {
		e := &each[f.dir.index]
		e.Files++
		e.LiveBytes += f.live
		dead := f.live == 0 && f.ended
		if !dead || f.holders > 0 {
			counted[f.dir.index] += f.bytes
		}
		if f.holders > 0 {
			e.HeldBytes += f.bytes
			if dead {
				e.KeptBytes += f.bytes
			}
		}
	}
	s.mu.Unlock()
	for i, d := range s.dirs {
		d.mu.Lock()
		used := d.room.used.Load()
		each[i].DyingBytes = max(0, used-counted[i])
		each[i].TotalBytes = used + d.appends.filledBytes()
		d.mu.Unlock()
		each[i].OtherBytes, each[i].BudgetBytes = d.room.charged.Load(), d.room.budget
		all.Files += each[i].Files
		all.TotalBytes += each[i].TotalBytes
		all.LiveBytes += each[i].LiveBytes
		all.HeldBytes += each[i].HeldBytes
		all.KeptBytes += each[i].KeptBytes
		all.DyingBytes += each[i].DyingBytes
		all.OtherBytes += each[i].OtherBytes
		all.BudgetBytes += each[i].BudgetBytes
	}
	return all, each
}

// LiveBytes is the LiveBytes of Space, without examining every file.
func (s *Set) LiveBytes() int64 {
	var n int64
	for _, d := range s.dirs {
		n += d.room.live.Load()
	}
	return n
}

// AppendedBytes is how many bytes were appended since the Set was opened (buckets, headers and
// padding), whether they have been written or are still in buffers.
func (s *Set) AppendedBytes() int64 {
	var n int64
	for _, d := range s.dirs {
		d.mu.Lock()
		n += d.appends.sealed + d.appends.filledBytes()
		d.mu.Unlock()
	}
	return n
}

// Charge adds bytes of the caller's other files in the directory to what counts towards its budget.
// bytes is negative when such files are deleted.
func (s *Set) Charge(directory int, bytes int64) { s.dirs[directory].room.charged.Add(bytes) }

// Claim is Charge for bytes that the caller is about to write in a directory; free is the number of
// free bytes of the directory's file system. The file system must have room for these bytes and for
// what waits in append buffers, and the budget must have room for them, too; Claim may use the part
// for urgent appends. If there is no room, Claim returns a NoSpaceError and charges nothing.
func (s *Set) Claim(directory int, bytes, free int64) error {
	d := s.dirs[directory]
	d.mu.Lock()
	defer d.mu.Unlock()
	r, filled := &d.room, d.appends.filledBytes()
	used, other := r.used.Load()+(filled+writeAlign-1)&^(writeAlign-1), r.charged.Load()
	free -= filled + d.appends.queuedBytes()
	full := &NoSpaceError{Dir: d.dev.Dir(), NeedBytes: bytes, UsedBytes: used, OtherBytes: other, BudgetBytes: r.budget, FreeBytes: -1}
	if r.budget > 0 && used+other+bytes > r.budget {
		return full
	}
	if bytes > free {
		full.FreeBytes = max(free, 0)
		return full
	}
	r.charged.Add(bytes)
	return nil
}

// AwaitDeletions waits until the deletion of all files that nothing needs any more has succeeded or
// failed.
func (s *Set) AwaitDeletions() {
	for _, d := range s.dirs {
		d.mu.Lock()
		d.awaitDeletionsLocked()
		d.mu.Unlock()
	}
}

// CheckLive compares the live bytes of every file with the locations to which an index refers, and
// returns all differences. locations yields each location once. Nothing may be appended or released
// meanwhile.
func (s *Set) CheckLive(locations iter.Seq[Location]) error {
	found := map[uint32]int64{}
	for loc := range locations {
		if loc != 0 {
			found[loc.File()] += int64(loc.Units()) * int64(s.unit)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.sortedFilesLocked() {
		if f.live != found[f.id] {
			errs = append(errs, fmt.Errorf("bucketfile: %s counts %d live bytes, but the index refers to %d", f.path(), f.live, found[f.id]))
		}
		delete(found, f.id)
	}
	for id, n := range found {
		errs = append(errs, fmt.Errorf("%w: the index refers to %d bytes in file %d", ErrUnknownFile, n, id))
	}
	return errors.Join(errs...)
}
