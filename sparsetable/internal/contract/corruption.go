package contract

import (
	"fmt"

	"aibox/internal/errkind"
)

// CorruptionError reports damage in a file.
type CorruptionError struct {
	File   string
	Offset int64 // of the damaged part: header, block, footer or bucket; -1: the damage has no single place
	Bucket bool  // the damaged part is the bucket of Slot
	Slot   uint32
	Reason string
}

func (e *CorruptionError) Error() string {
	if e.Bucket {
		return fmt.Sprintf("sparsetable: %s is damaged at offset %d, in the bucket of slot %d: %s", e.File, e.Offset, e.Slot, e.Reason)
	}
	if e.Offset < 0 {
		return fmt.Sprintf("sparsetable: %s is damaged: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("sparsetable: %s is damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}

// ErrorKind classifies the error for exit codes and reports.
func (*CorruptionError) ErrorKind() errkind.Kind { return errkind.IO }
