package bucketfile

import (
	"encoding/binary"
	"fmt"
)

// State is what a snapshot records about the bucket files; Open needs it.
type State struct {
	Snapshot  uint64 // that holds the files
	UnitBytes int
	NextFile  uint32
	Seq       uint64
	Files     []FileState // those with live buckets, by number
}

// FileState is one file in a State.
type FileState struct {
	File      uint32
	Bytes     int64 // that hold records
	LiveBytes int64 // of buckets that the snapshot refers to
}

// stateLocked returns the state at this instant. REQUIRES: s.mu is held.
func (s *Set) stateLocked(snapshot uint64) State {
	st := State{Snapshot: snapshot, UnitBytes: s.unit, NextFile: s.mu.nextFile, Seq: s.seq.Load()}
	for _, f := range s.sortedFilesLocked() {
		if f.live > 0 {
			st.Files = append(st.Files, FileState{File: f.id, Bytes: f.valid, LiveBytes: f.live})
		}
	}
	return st
}

const stateVersion = 1

// Append appends the state to b in a binary form, without a checksum: the
// catalog has its own.
func (st *State) Append(b []byte) []byte {
	b = append(b, stateVersion)
	for _, v := range []uint64{st.Snapshot, uint64(st.UnitBytes), uint64(st.NextFile), st.Seq, uint64(len(st.Files))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, f := range st.Files {
		b = binary.AppendUvarint(b, uint64(f.File))
		b = binary.AppendUvarint(b, uint64(f.Bytes))
		b = binary.AppendUvarint(b, uint64(f.LiveBytes))
	}
	return b
}

// ParseState reads what Append wrote, all of b.
func ParseState(b []byte) (State, error) {
	bad := func(format string, args ...any) (State, error) {
		return State{}, fmt.Errorf("%w: state of the bucket files: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
	if len(b) == 0 || b[0] != stateVersion {
		return bad("%d bytes of unknown version", len(b))
	}
	b = b[1:]
	ok := true
	next := func(limit uint64) uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > limit {
			ok, v, n = false, 0, len(b)
		}
		b = b[n:]
		return v
	}
	const sizes = maxOffset * fileHeaderBytes
	st := State{
		Snapshot: next(1<<64 - 1), UnitBytes: int(next(fileHeaderBytes)),
		NextFile: uint32(next(maxFile + 1)), Seq: next(1<<64 - 1),
	}
	n := next(uint64(len(b) / 3)) // a file takes 3 bytes at least
	for i := range n {
		f := FileState{File: uint32(next(maxFile)), Bytes: int64(next(sizes)), LiveBytes: int64(next(sizes))}
		if !ok || f.File == 0 || f.File >= st.NextFile || f.LiveBytes > f.Bytes || i > 0 && f.File <= st.Files[i-1].File {
			return bad("the entry of file %d of %d is invalid: %+v", i, n, f)
		}
		st.Files = append(st.Files, f)
	}
	if !ok || len(b) != 0 {
		return bad("it is truncated, or %d bytes follow it", len(b))
	}
	return st, nil
}
