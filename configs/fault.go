package configs

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/errkind"
)

// Fault is one thing wrong with a job file.
type Fault struct {
	// File is the name of the job file, or the override of the command line
	// that the fault is in, such as "--set model.kind=dlmr".
	File string
	// Line and Column count from 1; both are 0 in an override.
	Line, Column int
	// Path is the key, such as data.columns[2].role; empty for faults of the
	// file as a whole.
	Path string
	// Message says what is wrong, what is allowed and what to do.
	Message string

	// order sorts faults by where they are: it is 0 for the file, the rank from 1
	// on for an override, and commandLine for another flag.
	order int
}

// commandLine is the order of faults in flags, which stand before all others.
const commandLine = -1

// newFaults are faults of a file and of overrides of it.
func newFaults(file string, faults []yamltree.Fault) []Fault {
	out := make([]Fault, len(faults))
	for i, f := range faults {
		out[i] = Fault{File: file, Line: f.Line, Column: f.Column, Path: f.Path, Message: f.Message, order: f.Order}
		if f.Set != "" {
			out[i].File, out[i].Line, out[i].Column = f.Set, 0, 0
		}
	}
	return out
}

// Error prints the fault as a compiler does.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if f.Path != "" {
		b.WriteString(": " + f.Path)
	}
	b.WriteString(": " + f.Message)
	return b.String()
}

// FaultsError is everything wrong with a job file, sorted by position. Faults of
// overrides come last. It is never empty.
type FaultsError []Fault

// Error prints all faults, one per line.
func (e FaultsError) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// ErrorKind sorts the error for exit codes and reports: a fault of the job file,
// or, where all faults are in overrides, of the command line.
func (e FaultsError) ErrorKind() errkind.Kind {
	if slices.ContainsFunc(e, func(f Fault) bool { return f.order == 0 }) {
		return errkind.Job
	}
	return errkind.Usage
}

// sortFaults sorts by position and drops repetitions: a node to which two aliases
// refer is checked twice.
func sortFaults(faults []Fault) []Fault {
	sort.SliceStable(faults, func(i, j int) bool {
		a, b := faults[i], faults[j]
		if a.order != b.order {
			return a.order < b.order
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	out := faults[:0]
	for i, f := range faults {
		if i > 0 && f == faults[i-1] {
			continue
		}
		out = append(out, f)
	}
	return out
}
