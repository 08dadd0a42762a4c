package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"aibox/sparsetable/internal/contract"
)

// Fault is a fault that Verify found.
type Fault struct {
	Snapshot uint64 `json:"snapshot"` // the snapshot in which it was found; 0: none in particular
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset"` // in File; -1: the fault has no single place
	Slot     int64  `json:"slot"`   // the slot whose bucket is at fault; -1: none
	Reason   string `json:"reason"`
	// Missing says that the file is in none of the given directories.
	Missing bool `json:"-"`
}

func (f Fault) String() string {
	text := f.Reason
	if f.Slot >= 0 {
		text = fmt.Sprintf("slot %d: %s", f.Slot, text)
	}
	switch {
	case f.File != "" && f.Offset >= 0:
		text = fmt.Sprintf("%s at offset %d: %s", f.File, f.Offset, text)
	case f.File != "":
		text = fmt.Sprintf("%s: %s", f.File, text)
	}
	if f.Snapshot != 0 {
		text = fmt.Sprintf("snapshot %d: %s", f.Snapshot, text)
	}
	return text
}

// Verification says what Verify has checked so far.
type Verification struct {
	Kind      string `json:"kind"`
	Snapshots int    `json:"snapshots"`
	Buckets   int64  `json:"buckets"`    // in all snapshots; a bucket counts once per snapshot that has it
	Rows      int64  `json:"rows"`       // counted in the same way
	TotalRows int64  `json:"total_rows"` // rows to be verified in all; 0: not yet known
	ReadBytes int64  `json:"read_bytes"` // of buckets
	Faults    int64  `json:"faults"`
}

// Report records what is verified, and faults.
type Report struct {
	Done Verification
	At   uint64 // the snapshot that is being verified; 0: none in particular

	fault    func(Fault)
	progress func(Verification)
	named    map[string]bool // files for which a fault was reported before the table was opened
}

// NewReport returns a Report on a table of that kind. Either function may be nil.
func NewReport(kind string, fault func(Fault), progress func(Verification)) *Report {
	if fault == nil {
		fault = func(Fault) {}
	}
	if progress == nil {
		progress = func(Verification) {}
	}
	return &Report{Done: Verification{Kind: kind}, fault: fault, progress: progress, named: map[string]bool{}}
}

// Each calls verify for each of the snapshots ids.
func (v *Report) Each(ids []uint64, verify func(id uint64) error) error {
	for _, id := range ids {
		v.At = id
		err := verify(id)
		v.At = 0
		if err != nil {
			return err
		}
		v.Done.Snapshots++
	}
	return nil
}

// Progress reports the progress to the caller.
func (v *Report) Progress() { v.progress(v.Done) }

// Named reports whether Files found a fault of the file at path.
func (v *Report) Named(path string) bool { return v.named[filepath.Clean(path)] }

// NamedAny reports whether Files found a fault of any file.
func (v *Report) NamedAny() bool { return len(v.named) > 0 }

// Found reports a fault.
func (v *Report) Found(f Fault) {
	f.Snapshot = v.At
	v.Done.Faults++
	v.fault(f)
}

// FoundError reports err as a fault if it is about damage of the table. It returns all other
// errors, and any error after ctx has ended.
func (v *Report) FoundError(ctx context.Context, err error) error {
	var bad *contract.CorruptionError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.As(err, &bad):
		f := Fault{File: bad.File, Offset: bad.Offset, Slot: -1, Reason: bad.Reason}
		if bad.Bucket {
			f.Slot = int64(bad.Slot)
		}
		v.Found(f)
		return nil
	}
	return err
}
