// Package errkind classifies errors by what a user does about them: correct the
// command line, the job file or the data, wait for another process, or report a fault
// of aibox. Each kind has an exit code and a name, which `aibox --help`, README.md and
// the summary of a failed run use.
//
// An error says its kind by a method ErrorKind. New makes sentinel errors that have
// this method, and As gives another kind to an error. Of finds the kind of an error:
// the outermost error in its chain that has the method decides. Errors of the operating
// system have no such method, and are of kind IO.
package errkind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Kind is what an error is about.
type Kind int

// The kinds.
const (
	Internal    Kind = iota // a fault of aibox itself, or an error that does not say its kind
	Usage                   // a mistake on the command line
	Job                     // a fault of the job file, or a setting in it that cannot be carried out
	Data                    // too many bad rows, or no usable data
	IO                      // input or output failed, or a device
	Locked                  // another process trains the job, or uses the model directory, the table or a device
	LostData                // more of the data is lost than the job allows
	Diverged                // a loss, a prediction or a number of the model or of its optimizer is not finite, predictions are worse than a constant, or all labels are the same
	Interrupted             // a signal ended the work
)

// kinds has for each kind its exit code, its name in JSON, and what --help says.
var kinds = [...]struct {
	code       int
	name, text string
}{
	Internal:    {1, "internal", "a bug in aibox itself"},
	Usage:       {2, "usage", "a mistake on the command line"},
	Data:        {3, "data", "too many bad rows, or no usable data"},
	IO:          {4, "io", "input or output failed, for example because a file does not exist, a disk is full or a device fails"},
	Job:         {5, "job_file", "an error in the job file, or a setting that cannot be applied"},
	Locked:      {6, "locked", "another process is training the job, or using the model directory, the table or a device"},
	LostData:    {7, "lost_data", "more of the data was lost or damaged than data.max_lost_fraction allows, or more samples than recovery.max_lost_samples"},
	Diverged:    {8, "diverged", "the model diverged: a loss, a prediction or a number of the model or of its optimizer is not finite, its predictions are worse than a constant, or all of its many examples have the same label"},
	Interrupted: {130, "interrupted", "interrupted"},
}

// All are the kinds in the order of their exit codes.
var All = []Kind{Internal, Usage, Data, IO, Job, Locked, LostData, Diverged, Interrupted}

// ExitCode returns the exit code of a process that an error of this kind ends.
func (k Kind) ExitCode() int { return kinds[k].code }

// String returns the name of the kind, which the summary of a failed run contains.
func (k Kind) String() string { return kinds[k].name }

// Text says what the kind means, for --help.
func (k Kind) Text() string { return kinds[k].text }

// kinded is an error that says its kind.
type kinded interface{ ErrorKind() Kind }

// withKind is an error that was given a kind.
type withKind struct {
	error
	kind Kind
}

func (e *withKind) ErrorKind() Kind { return e.kind }
func (e *withKind) Unwrap() error   { return e.error }

// ErrNewer says that a newer version of aibox wrote something in a format that this version cannot
// read. It is not damaged, so it is neither deleted nor restored.
var ErrNewer = New(IO, "use a newer aibox")

// Newer returns an ErrNewer about data in format version have, if this program reads versions up to
// known.
func Newer(have, known int) error {
	return fmt.Errorf("it has format %d, and this program reads up to %d: %w", have, known, ErrNewer)
}

// New is errors.New for an error of a kind.
func New(kind Kind, text string) error { return &withKind{errors.New(text), kind} }

// Errorf is fmt.Errorf for an error of a kind.
func Errorf(kind Kind, format string, args ...any) error {
	return &withKind{fmt.Errorf(format, args...), kind}
}

// As returns err as an error of another kind; nil stays nil.
func As(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &withKind{err, kind}
}

// Of returns the kind of an error that ended work under ctx. If ctx was cancelled, but
// the error has another cause, the kind is that of the error.
func Of(ctx context.Context, err error) Kind {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled) {
		return Interrupted
	}
	if kind, says := Find(err); says {
		return kind
	}
	if isIO(err) {
		return IO
	}
	return Internal
}

// Find returns the kind that err says it has, or the outermost error that err wraps
// and that says its kind. It returns false if none does.
func Find(err error) (Kind, bool) {
	var says kinded
	if errors.As(err, &says) {
		return says.ErrorKind(), true
	}
	return Internal, false
}

// isIO reports whether err is of the operating system, or about input that ended early
// or output that was cut short.
func isIO(err error) bool {
	var (
		path  *fs.PathError
		link  *os.LinkError
		call  *os.SyscallError
		errno syscall.Errno
	)
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.As(err, &errno) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrShortWrite)
}
