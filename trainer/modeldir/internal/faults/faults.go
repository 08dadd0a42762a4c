// Package faults has the errors that the packages of model directories share.
package faults

import (
	"fmt"

	"aibox/internal/errkind"
)

// ErrLocked says that another run is writing the directory.
var ErrLocked = errkind.New(errkind.Locked, "model directory is locked")

// Corruption says that a file of the model directory is damaged.
type Corruption struct {
	File   string
	Offset int64 // negative if the error is about the whole file
	Reason string
}

// Damaged returns the error about a whole file or directory.
func Damaged(file, reason string) *Corruption { return &Corruption{file, -1, reason} }

func (e *Corruption) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("model directory is damaged: %s%s: %s; restore it with `aibox restore`, go back to another model with `aibox rollback`, or train again", e.File, at, e.Reason)
}

// ErrorKind sorts the error for exit codes and reports.
func (*Corruption) ErrorKind() errkind.Kind { return errkind.IO }
