package faults

import (
	"bytes"
	"fmt"

	"aibox/internal/humanize"
	"aibox/reader/internal/rowtext"
)

// Fault is what a decoder reports about a bad row. The zero fault means that the
// row is good.
type Fault struct {
	Reason Reason
	Column string // "" where it is not about one column
	Cell   []byte // into the row; only valid until the next row
	At     int    // ReasonUTF8: the position, from 1 on, of the first byte of the row that is not valid UTF-8; 0: unknown
	// ReasonColumns: how many cells there are and should be. More than want+1
	// are not counted.
	Found, Want int
	// File says what the file is instead of text, where its first row shows that; else "".
	File string
}

// String names the column and the cell that are at fault. It goes into the log and into
// errors, and shows no more of a cell than people need to recognize it.
func (f Fault) String() string {
	switch {
	case f.File != "":
		return f.File
	case f.At > 0 && f.Column != "":
		return fmt.Sprintf("column %s: byte %d of the row is 0x%02x", f.Column, f.At, f.Cell[0])
	case f.At > 0:
		return fmt.Sprintf("byte %d of the row is 0x%02x", f.At, f.Cell[0])
	case f.Want > 0:
		return fmt.Sprintf("%s where %d are expected", humanize.Count(int64(f.Found), "cell"), f.Want)
	case f.Column == "" && f.Cell == nil:
		return ""
	case f.Column == "":
		return rowtext.Shown(f.Cell)
	case f.Cell == nil:
		return "column " + f.Column
	default:
		return fmt.Sprintf("column %s: %s", f.Column, rowtext.Shown(f.Cell))
	}
}

// PartOfRow reports whether a faulty last line without a line end looks like the beginning of a
// row, and the file therefore truncated: the line has at least one complete cell, and its only
// fault is that the other cells are missing. A remark below the rows, for example, has no cells.
func (f Fault) PartOfRow(line []byte, delimiter byte) bool {
	switch f.Reason {
	case ReasonColumns:
		return f.Found > 1 && f.Found < f.Want
	case ReasonQuote:
		return bytes.IndexByte(line, delimiter) >= 0
	case ReasonFeature:
		return len(f.Cell) < len(line) && bytes.HasSuffix(line, f.Cell)
	}
	return false
}
