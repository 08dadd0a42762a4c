package bucketfile

// State is what a snapshot records about the bucket files; Open needs it.
type State struct {
	Snapshot  uint64 // the snapshot that holds the files
	UnitBytes int
	NextFile  uint32 // the first number to try for a new file; 0 only in the zero State
	Seq       uint64
	Files     []FileState // those with live buckets, by number
	// Growing are the files that were being appended to, with or without live buckets, and their
	// lengths. With Seq they tell which buckets existed: those in files that were begun before Seq,
	// and in a growing file those up to its length.
	Growing []FileState
}

// FileState is one file in a State.
type FileState struct {
	File        uint32
	Dir         uint16 // the directory that has it; Open looks for it in all of them
	Incarnation uint64 // 0: a file of an older version, which has none
	Bytes       int64  // length of the part that holds records
	LiveBytes   int64  // of buckets that the snapshot refers to
	Begun       uint64 // the Set's Seq when the file was begun; 0: a file of an older version
}

// stateLocked returns the state at this instant. REQUIRES: s.mu is held.
func (s *Set) stateLocked(snapshot uint64) State {
	st := State{Snapshot: snapshot, UnitBytes: s.unit, NextFile: s.mu.nextFile, Seq: s.seq.Load()}
	for _, f := range s.sortedFilesLocked() {
		s := FileState{File: f.id, Dir: uint16(f.dir.index), Incarnation: f.incarnation, Bytes: f.valid, LiveBytes: f.live, Begun: f.begun}
		if f.live > 0 {
			st.Files = append(st.Files, s)
		}
		if !f.ended {
			st.Growing = append(st.Growing, s)
		}
	}
	return st
}
