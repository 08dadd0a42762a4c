package catalog

// Snapshot is what the catalog stores of a snapshot besides the pages of its index.
type Snapshot struct {
	ID    uint64 // assigned by Begin
	Slots uint32 // of the index
	Rows  int64  // trained rows
	Files []File // bucket files that must be kept for the snapshot
	// Deltas are the dumps of rows that were dirty in the cache, oldest first.
	Deltas   []Delta
	Counters map[string]int64 // maintained by the table
	Record   []byte           // given by the caller

	// PageBytes is the size of the pages that this snapshot wrote. Commit sets it.
	PageBytes int64
}

// File is a bucket file.
type File struct {
	ID          uint32
	Dir         uint16 // which of the table's directories
	Bytes       int64
	LiveBytes   int64  // of the buckets that the snapshot refers to
	Incarnation uint64 // distinguishes the file from others with the same ID; 0: it has none
	Begun       uint64 // the Seq of the bucket files when this one was begun; 0 in records of versions 1 and 2
}

// Delta is a file of rows.
type Delta struct {
	Dir   uint16
	Name  string
	Bytes int64
	Rows  int64

	// The following fields are 0 in records of versions 1 and 2, which have at most one file.
	Snapshot   uint64 // the snapshot that wrote the file
	DirtyBytes int64  // size of the file's first part, which has the dirty rows
	DirtyRows  int64
	// Seq and Growing are those of the bucket files at the instant when the rows were fixed.
	Seq     uint64
	Growing []FileEnd
}

// FileEnd is the length of a bucket file.
type FileEnd struct {
	File  uint32
	Bytes int64
}

// kept is a snapshot in memory.
type kept struct {
	Snapshot
	versions []uint64 // per page of the index: the ID of the snapshot that wrote it
}
