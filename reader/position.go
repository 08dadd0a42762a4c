package reader

import "errors"

// Position is a place between two examples of the input, with everything that reading the
// rest of the input depends on. What depends on the rows before the place is as of the
// beginning of the unit of the example before it: a reading that starts at the place
// decodes that unit from its beginning, and so finds the rows between the two again.
type Position struct {
	File int   `json:"file"` // number of the unit's file among those that are not empty
	Unit int   `json:"unit"` // number of the unit in its file
	Skip int64 `json:"skip"` // examples between the beginning of the unit and the place

	Line      int64     `json:"line"` // number of the unit's first line
	Long      longLines `json:"long_lines,omitzero"`
	FileStart readSoFar `json:"file_start"` // what was read of the input before the file's first row
	Counts    Counts    `json:"counts"`

	MissingBytes int64   `json:"missing_bytes"` // see lossTally
	UnitRows     int64   `json:"unit_rows"`     // this and the next two: see pace
	Density      float64 `json:"density"`
	InputRows    int64   `json:"input_rows"`

	// QuarantineBytes and QuarantineRows are what was written to Options.Quarantine
	// before the beginning of the unit.
	QuarantineBytes int64 `json:"quarantine_bytes"`
	QuarantineRows  int   `json:"quarantine_rows"`
}

// position is the present place. REQUIRES: it is the beginning of a unit.
func (r *rows) position() Position {
	p := Position{
		File: r.file.number, Unit: r.stream.current.number,
		Line: r.line, Long: r.long, FileStart: r.fileStart, Counts: r.snapshot(),
		MissingBytes: r.loss.missing,
		UnitRows:     r.tally.pace.inUnit, Density: r.tally.pace.density, InputRows: r.tally.pace.rows,
	}
	p.QuarantineRows, p.QuarantineBytes = r.tally.quarantine.written()
	return p
}

// restore makes the beginning of the position's unit the present place. The stream begins
// with that unit.
func (r *rows) restore(p *Position) {
	r.at = *p
	r.at.Skip = 0
	r.file, r.line, r.long, r.fileStart = r.stream.files[p.File], p.Line, p.Long, p.FileStart
	r.counts = p.Counts
	r.tally.restore(&p.Counts)
	r.loss.restore(&p.Counts, p.MissingBytes)
	pace := &r.tally.pace
	pace.read, pace.inUnit, pace.density, pace.rows = p.Counts.BytesRead, p.UnitRows, p.Density, p.InputRows
	r.tally.quarantine.restore(p.QuarantineRows, p.QuarantineBytes)
}

// errNoSuchPlace says that the input does not have the unit or the examples of the position
// at which reading starts. Since the files were compared, this should not occur.
var errNoSuchPlace = &CursorError{errors.New("reader: the place at which reading is to start does not exist in the input, although its files have not changed")}
