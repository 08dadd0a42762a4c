package reader

import (
	"errors"

	"aibox/reader/internal/faults"
)

// Position is a place between two examples of the input, with all state that reading the rest
// depends on. State that depends on earlier rows is as of the beginning of the unit of the example
// before the place: a reading that starts at the place decodes that unit from its beginning, and so
// finds the rows in between again.
type Position struct {
	File int   `json:"file"` // number of the unit's file among those that are not empty
	Unit int   `json:"unit"` // number of the unit in its file
	Skip int64 `json:"skip"` // examples between the beginning of the unit and the place

	Line   int64  `json:"line"` // number of the unit's first line
	Counts Counts `json:"counts"`
	faults.State
}

// position is the present place. REQUIRES: it is the beginning of a unit.
func (r *rows) position() Position {
	return Position{File: r.file.number, Unit: r.stream.current.number, Line: r.line, Counts: r.snapshot(), State: r.tally.State()}
}

// restore moves to the beginning of the position's unit, at which the stream starts.
func (r *rows) restore(p *Position) {
	r.at = *p
	r.at.Skip = 0
	r.file, r.line, r.counts = r.stream.files[p.File], p.Line, p.Counts
	r.tally.Restore(r.file.File, &p.State, &p.Counts.Counts, p.Counts.BytesRead)
}

// errNoSuchPlace says that the input does not have the unit or the examples of the position
// at which reading starts. Since the files were compared, this should not occur.
var errNoSuchPlace = &CursorError{errors.New("reader: the place at which reading is to start does not exist in the input, although its files have not changed")}
