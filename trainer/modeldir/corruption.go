package modeldir

import (
	"fmt"

	"aibox/internal/errkind"
)

// CorruptionError says that a file of the model directory is damaged.
type CorruptionError struct {
	File   string
	Offset int64 // negative: the error is about the whole file
	Reason string
}

// noOffset is the Offset of a CorruptionError about a whole file or directory.
const noOffset = -1

// Incomplete is the error for what an interrupted run has left if its parts do not fit.
func (w *Writer) Incomplete(err error) error {
	return &CorruptionError{File: w.TableDir(), Offset: noOffset, Reason: err.Error()}
}

func (e *CorruptionError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("model directory is damaged: %s%s: %s; bring it back with `aibox restore`, go back to another model with `aibox rollback`, or train again", e.File, at, e.Reason)
}

// ErrorKind sorts the error for exit codes and reports.
func (*CorruptionError) ErrorKind() errkind.Kind { return errkind.IO }
