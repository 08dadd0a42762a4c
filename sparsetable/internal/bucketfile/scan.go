package bucketfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"aibox/sparsetable/internal/blockio"
)

// A Candidate is a file that compaction may empty.
type Candidate struct {
	File      uint32
	Directory int // in the order of Options.Devices
	Bytes     int64
	LiveBytes int64
	Holders   int // snapshots
}

// Compare is the order in which files are emptied. Files that free the most bytes per byte that has
// to be moved come first. Files that snapshots hold come last: moving their buckets frees nothing
// before these snapshots are dropped.
func (c Candidate) Compare(o Candidate) int {
	if (c.Holders > 0) != (o.Holders > 0) {
		return cmp.Compare(c.Holders, o.Holders)
	}
	return cmp.Or(cmp.Compare(float64(c.LiveBytes)/float64(c.Bytes), float64(o.LiveBytes)/float64(o.Bytes)), cmp.Compare(c.File, o.File))
}

// EachCandidate calls fn, in any order, for the files with dead bytes to which nothing is appended
// any more. It takes some nanoseconds per file. fn must not use the Set.
func (s *Set) EachCandidate(fn func(Candidate)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.mu.files {
		if f.ended && f.written.Load() >= f.valid && f.live < f.bytes-fileHeaderBytes {
			fn(Candidate{File: f.id, Bytes: f.bytes, LiveBytes: f.live, Holders: f.holders, Directory: f.dir.index})
		}
	}
}

// CompactionCandidates returns the files of EachCandidate in the order of Compare.
func (s *Set) CompactionCandidates() []Candidate {
	var all []Candidate
	s.EachCandidate(func(c Candidate) { all = append(all, c) })
	slices.SortFunc(all, Candidate.Compare)
	return all
}

// LiveFiles returns the files with live buckets, by number.
func (s *Set) LiveFiles() []Candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	var live []Candidate
	for _, f := range s.sortedFilesLocked() {
		if f.live > 0 {
			live = append(live, Candidate{File: f.id, Bytes: f.bytes, LiveBytes: f.live, Holders: f.holders, Directory: f.dir.index})
		}
	}
	return live
}

// maxScanErrors bounds the corruptions that one scan reports.
const maxScanErrors = 16

// ScanFile reads a file from its start in large reads and calls fn with every bucket that was
// written to the device, live or not; the caller compares loc with the present location of the
// bucket's slot. The bucket is valid during the call. An error of fn ends the scan and is returned.
// ScanFile skips damaged places, still finds the buckets after them, and returns the joined
// CorruptionErrors of the first 16 of these places. A file that was truncated is scanned to its
// end. If a read fails, ScanFile returns an error that wraps ErrUnreadable.
func (s *Set) ScanFile(ctx context.Context, id uint32, fn func(loc Location, b *Bucket) error) error {
	s.mu.Lock()
	f := s.mu.files[id]
	closed := s.mu.closed
	if f != nil {
		f.pins++
	}
	s.mu.Unlock()
	if f == nil {
		return fmt.Errorf("%w: scan file %d", ErrUnknownFile, id)
	}
	defer s.unpin(f)
	if closed {
		return ErrClosed
	}
	s.mu.Lock()
	end := min(f.written.Load(), f.valid)
	s.mu.Unlock()
	buf, err := s.pool.GetBeyond(s.opts.BufferBytes)
	if err != nil {
		return fmt.Errorf("bucketfile: scan %s: %w", f.path(), err)
	}
	defer s.pool.Put(buf)
	sc := scanner{set: s, file: f, fn: fn}
	// Each iteration reads from the first record that has not been read entirely.
	for at := int64(fileHeaderBytes); at < end; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("bucketfile: scan %s: %w", f.path(), err)
		}
		from := at &^ (int64(f.dir.dev.Unit()) - 1) // records start at units of the table
		to := min(from+int64(len(buf)), roundUp(end, int64(f.dir.dev.Unit())))
		n, err := f.handle.ReadAt(buf[:to-from], from)
		if err != nil && err != io.EOF {
			return fmt.Errorf("%w: scan %s: %w", ErrUnreadable, f.path(), err)
		}
		want := int(min(to, end) - at)
		n = min(n-int(at-from), want)
		short := n < want // the file was truncated, maybe within a unit
		n = max(n-n%s.unit, 0)
		next, err := sc.chunk(buf[at-from:][:n], at, short || at+int64(n) >= end)
		if err != nil {
			return err
		}
		if short {
			sc.errs = append(sc.errs, f.corrupt(at+int64(n), "the file ends here"))
			break
		}
		at = next
	}
	return errors.Join(sc.errs...)
}

// scanner is the state of a ScanFile.
type scanner struct {
	set  *Set
	file *file
	fn   func(loc Location, b *Bucket) error
	errs []error
	bad  bool // the previous unit was not the start of a record

	refetched int   // how often the place at was fetched again
	at        int64 // a damaged place
}

// refetch fetches again what was read from a damaged place on, if the file is still arriving, and
// reports whether the bytes may be right now.
func (sc *scanner) refetch(buf []byte, from int64) (bool, error) {
	if sc.at != from {
		sc.at, sc.refetched = from, 0
	}
	if sc.refetched == maxRefetches {
		return false, nil
	}
	sc.refetched++
	again, err := blockio.Refetch(sc.file.handle, buf, from)
	if err != nil {
		return false, fmt.Errorf("bucketfile: scan %s: %w", sc.file.path(), err)
	}
	return again, nil
}

// chunk goes through the records in buf, which starts at base, and returns where the next chunk
// starts. A record that fails and may extend beyond buf is tried again in the next chunk, unless
// this one is the last or the record came first.
func (sc *scanner) chunk(buf []byte, base int64, last bool) (int64, error) {
	unit, f := sc.set.unit, sc.file
	for at := 0; at < len(buf); {
		offset := (base + int64(at)) / int64(unit)
		seed := f.seed(offset)
		if n := decodeFiller(buf[at:], seed); n > 0 {
			at += n * unit
			sc.bad = false
			if at >= len(buf) {
				return base + int64(at), nil
			}
			continue
		}
		b, n, reason := decodeBucket(buf[at:], seed, sc.set.opts.RowWords, sc.set.opts.Format)
		if reason == "" {
			units := unitsOf(n, unit)
			if err := sc.fn(makeLocation(f.id, offset, units), &b); err != nil {
				return 0, err
			}
			at += units * unit
			sc.bad = false
			continue
		}
		if !last && at > 0 && len(buf)-at < min(MaxUnits*unit, sc.set.opts.BufferBytes-fileHeaderBytes) {
			return base + int64(at), nil
		}
		if again, err := sc.refetch(buf[at:], base+int64(at)); err != nil {
			return 0, err
		} else if again {
			continue
		}
		if !sc.bad && len(sc.errs) < maxScanErrors {
			sc.errs = append(sc.errs, f.corrupt(base+int64(at), reason))
		}
		sc.bad = true
		at += unit
	}
	return base + int64(len(buf)), nil
}
