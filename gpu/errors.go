package gpu

import (
	"fmt"
	"strings"

	"aibox/internal/errkind"
)

// Kind is what an error is about. Kinds are errors themselves, for errors.Is.
type Kind uint8

const (
	OutOfMemory     Kind = iota + 1 // the device, or the host, has not enough memory left
	InvalidArgument                 // a call that can never succeed
	InUse                           // another process has the device for itself
	WrongDriver                     // the driver is missing, or too old for this program
	LaunchFailed                    // an operation failed, for instance by an address outside of all memory
	ECC                             // the device found an error in its memory that it could not correct
	DeviceLost                      // the device does not answer any more
)

func (k Kind) Error() string {
	return [...]string{
		"no error", "out of memory", "invalid argument", "the device is in use by another process",
		"this program cannot use devices", "an operation failed on the device",
		"uncorrectable memory error (ECC)", "the device is lost",
	}[k]
}

// Breaks tells whether a device that had this error is broken.
func (k Kind) Breaks() bool { return k >= LaunchFailed }

// Error is the error of a call.
type Error struct {
	Kind   Kind
	Device int    // number of the physical device; -1: none
	Call   string // that returned the error
	During string // the operation that failed, if it is known and not the call itself
	Reason string // what else is known
	Cause  *Error // of another device, whose failure has broken this one; nil: none

	Asked, Free, Total int64 // of OutOfMemory: bytes
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("gpu: ")
	if e.Device >= 0 {
		fmt.Fprintf(&s, "device %d: ", e.Device)
	}
	if e.Call != "" {
		s.WriteString(e.Call + ": ")
	}
	s.WriteString(e.Kind.Error())
	if e.Kind == OutOfMemory {
		fmt.Fprintf(&s, ": %d bytes requested, %d of %d free", e.Asked, e.Free, e.Total)
	}
	if e.During != "" {
		s.WriteString(" during " + e.During)
	}
	if e.Reason != "" {
		s.WriteString(": " + e.Reason)
	}
	if e.Cause != nil {
		s.WriteString(": " + e.Cause.Error())
	}
	return s.String()
}

// Unwrap returns the kind, and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// ErrorKind sorts the error for exit codes and reports.
func (e *Error) ErrorKind() errkind.Kind {
	if e.Cause != nil {
		return e.Cause.ErrorKind()
	}
	switch e.Kind {
	case OutOfMemory, WrongDriver:
		return errkind.Job
	case InUse:
		return errkind.Locked
	case ECC, DeviceLost:
		return errkind.IO
	}
	return errkind.Internal
}

// Invalid is an InvalidArgument with a reason; whoever knows device and call adds them.
func Invalid(format string, args ...any) *Error {
	return &Error{Kind: InvalidArgument, Device: -1, Reason: fmt.Sprintf(format, args...)}
}
