package bucketfile

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("bucketfile: closed")
	// ErrNoSpace is wrapped by a NoSpaceError and by the error of a write that failed because the
	// disk is full.
	ErrNoSpace = errors.New("bucketfile: no space")
	// ErrCorrupt is wrapped by every CorruptionError.
	ErrCorrupt = errors.New("bucketfile: corrupt")
	// ErrUnreadable is wrapped by the error of a ScanFile whose device failed to read a part of the
	// file. Buckets in other parts may be read one by one.
	ErrUnreadable = errors.New("bucketfile: unreadable")
	// ErrTooLarge is wrapped by the error of Begin for a bucket that exceeds MaxUnits or the append
	// buffer: the table must split the slot.
	ErrTooLarge = errors.New("bucketfile: bucket too large")
	// ErrUnknownFile is wrapped by errors about a location in a file that does not
	// exist: the file was deleted, or it never existed.
	ErrUnknownFile = errors.New("bucketfile: unknown file")
	// ErrTwoFiles is wrapped by the error of Open for a file that is in two directories.
	ErrTwoFiles = errors.New("bucketfile: file in two directories")
	// ErrReleased is returned by Commit for an Appender that is finished.
	ErrReleased = errors.New("bucketfile: the appender was already committed or aborted")
)

// NoSpaceError is returned by Begin before anything is written. Compaction or
// dropping a snapshot makes room.
type NoSpaceError struct {
	Dir         string
	NeedBytes   int64
	UsedBytes   int64 // taken by all bucket files in the directory
	OtherBytes  int64 // taken by other files, see Set.Charge
	BudgetBytes int64 // of the directory; 0: none
	FreeBytes   int64 // left by the file system; -1: not asked
	// ReserveBytes is the part of the remaining space that this append may not use, see
	// Options.ReserveBytes and Options.UrgentBytes.
	ReserveBytes int64
}

func (e *NoSpaceError) Error() string {
	if e.FreeBytes >= 0 {
		kept := ""
		if e.ReserveBytes > 0 {
			kept = fmt.Sprintf(", and %d must stay free for snapshots and compaction", e.ReserveBytes)
		}
		return fmt.Sprintf("bucketfile: there is no room for %d bytes in %s: its file system has %d bytes left%s; free space there, compact the table, or drop its older snapshots",
			e.NeedBytes, e.Dir, e.FreeBytes, kept)
	}
	taken := fmt.Sprintf("buckets take %d of them", e.UsedBytes)
	if e.OtherBytes > 0 {
		taken += fmt.Sprintf(", other files take %d", e.OtherBytes)
	}
	if e.ReserveBytes > 0 {
		taken += fmt.Sprintf(", and %d are kept for compaction", e.ReserveBytes)
	}
	return fmt.Sprintf("bucketfile: there is no room for %d bytes in %s: its budget is %d bytes, %s; raise the budget, compact the table, or drop its older snapshots",
		e.NeedBytes, e.Dir, e.BudgetBytes, taken)
}

// Unwrap makes errors.Is(err, ErrNoSpace) true.
func (e *NoSpaceError) Unwrap() error { return ErrNoSpace }

// CorruptionError says where stored bytes differ from what was written.
type CorruptionError struct {
	File   string // with its directory
	Offset int64  // bytes
	Bucket bool   // a bucket of Slot was read; otherwise a file's header or end, or a scan
	Slot   uint32
	Reason string
}

func (e *CorruptionError) Error() string {
	slot := ""
	if e.Bucket {
		slot = fmt.Sprintf(", slot %d", e.Slot)
	}
	return fmt.Sprintf("bucketfile: corrupt: %s at %d%s: %s", e.File, e.Offset, slot, e.Reason)
}

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptionError) Unwrap() error { return ErrCorrupt }
