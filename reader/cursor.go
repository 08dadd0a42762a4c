package reader

import (
	"aibox/reader/source"
)

// Cursor is a place between two passes of a reading. A reading of the same input with
// the same options that starts at it (Options.Start) delivers the passes that would have
// followed, with the same examples, mini-batches, keys, counts, bad rows and errors.
// Options.Threads and Options.AheadChunks may differ. A Cursor is immutable, and can be
// written as JSON and read back.
//
// Decoding begins at the beginning of a unit, somewhat before the place. The bad rows and
// losses between the two are found and written to the quarantine again: whoever resumes a
// reading first truncates what it has written to Options.Quarantine to QuarantineBytes.
type Cursor struct {
	Files   []source.File     `json:"files"`   // of the input that are not empty
	Options map[string]string `json:"options"` // those that must be the same
	Passes  int64             `json:"passes"`  // before this place

	Position
	Windows uint64 `json:"windows"` // shuffle windows before the one that the place is in
	// Taken is how many examples of that window are in passes before this place. The
	// window begins at Position.
	Taken int `json:"taken"`
}

// Position is a place between two examples of the input, and everything that reading the
// rest of it depends on, as of the beginning of a unit: the state of rows.
type Position struct {
	File int   `json:"file"` // number of the unit's file
	Unit int   `json:"unit"` // number of the unit in its file
	Skip int64 `json:"skip"` // examples between the beginning of the unit and this place

	// QuarantineBytes and QuarantineRows are what this reading had written to
	// Options.Quarantine up to the beginning of the unit.
	QuarantineBytes int64 `json:"quarantine_bytes"`
	QuarantineRows  int   `json:"quarantine_rows"`
}
