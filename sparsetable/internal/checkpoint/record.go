package checkpoint

import (
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
)

// Names of catalog.Snapshot.Counters.
const (
	counterNextFile = "next_file"
	counterSeq      = "bucket_seq"
	counterStored   = "stored_rows"
	counterDirs     = "directories" // see Covers
	// Counters about the delta file, in records of older versions.
	counterDirtyBytes = "dirty_bytes"
	counterDirtyRows  = "dirty_rows"
)

// Upgraded adds what the records of older versions lack. The rows of such a snapshot are in one
// file. Its bucket files never grow once it is open.
func Upgraded(s catalog.Snapshot) catalog.Snapshot {
	if _, old := s.Counters[counterDirtyBytes]; !old || len(s.Deltas) != 1 {
		return s
	}
	d := s.Deltas[0]
	d.Snapshot, d.Seq = s.ID, uint64(s.Counters[counterSeq])
	d.DirtyBytes, d.DirtyRows = s.Counters[counterDirtyBytes], s.Counters[counterDirtyRows]
	s.Deltas = []catalog.Delta{d}
	return s
}

// StoredRows is the number of rows of a snapshot that are in buckets.
func StoredRows(s catalog.Snapshot) int64 { return s.Counters[counterStored] }

// NoBucketSince reports whether no bucket was written between the instants of a delta file
// and of a snapshot.
func NoBucketSince(d *catalog.Delta, s catalog.Snapshot) bool {
	return d.Seq == uint64(s.Counters[counterSeq])
}

// FileState is the state with which the bucket files are opened for a snapshot; unit is the size of
// the table's units.
func FileState(s catalog.Snapshot, unit int) bucketfile.State {
	if s.ID == 0 {
		return bucketfile.State{}
	}
	st := bucketfile.State{
		Snapshot: s.ID, UnitBytes: unit,
		NextFile: uint32(s.Counters[counterNextFile]), Seq: uint64(s.Counters[counterSeq]),
	}
	for _, f := range s.Files {
		st.Files = append(st.Files, bucketfile.FileState{File: f.ID, Incarnation: f.Incarnation, Bytes: f.Bytes, LiveBytes: f.LiveBytes, Begun: f.Begun})
	}
	return st
}

// WrittenBytes is the size of what a snapshot has and no earlier one has.
func WrittenBytes(s catalog.Snapshot) int64 {
	bytes := s.PageBytes
	for _, d := range s.Deltas {
		if d.Snapshot == s.ID {
			bytes += d.Bytes
		}
	}
	return bytes
}
