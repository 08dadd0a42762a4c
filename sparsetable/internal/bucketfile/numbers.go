package bucketfile

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// A Location has 24 bits for the number of a file, which is fewer than the files that a table may
// write in its life. Therefore a number is reused when its file is gone. Numbers are assigned in
// turn, not the lowest free one first: code that remembers a Location for a while, and later
// compares it with the slot's present Location, would be deceived only after 2^24 other files.
//
// The number alone does not identify a file. After a crash or a return to an older snapshot, the
// same numbers are assigned to files with other contents. The same happens in two copies of a table
// that are both written to. Therefore each file has an incarnation, which is a random number in its
// name, its header and the seed of its checksums.

// lastFile is the largest number of a file. It is one less than the largest that a Location can
// hold, because FileStart is also called with the number after a file's number.
const lastFile = maxFile - 1

// nextNumber returns the first number that is not taken, counting from first to last and then from
// 1, or 0 if all are taken.
func nextNumber(first, last uint32, taken func(uint32) bool) uint32 {
	id := first
	for range last {
		if id == 0 || id > last {
			id = 1
		}
		if !taken(id) {
			return id
		}
		id++
	}
	return 0
}

// takeNumberLocked returns a number for a new file. REQUIRES: s.mu is held.
func (s *Set) takeNumberLocked() (uint32, error) {
	id := nextNumber(s.mu.nextFile, s.opts.lastFile, func(id uint32) bool {
		_, opened := s.opened[id]
		return opened || s.mu.files[id] != nil
	})
	if id == 0 {
		return 0, fmt.Errorf("bucketfile: all %d file numbers are in use: drop snapshots, or export the table and import it into a new one with larger files", s.opts.lastFile)
	}
	s.mu.nextFile = id + 1
	return id, nil
}

// newIncarnation returns a random number. It is not 0, which stands for the files of
// older versions.
func newIncarnation() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// Begun returns the Seq that the Set had when a file was begun. opened reports whether one of the
// snapshots named a file with that number when the Set was opened; if not, seq is 0. Nothing was
// appended to such a file since, and its number is not given to another file before the Set is
// opened again.
func (s *Set) Begun(file uint32) (seq uint64, opened bool) {
	seq, opened = s.opened[file]
	return seq, opened
}
