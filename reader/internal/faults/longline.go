package faults

import (
	"fmt"

	"aibox/reader/source"
)

// A line longer than MaxLineBytes is a bad row. A line of gigabytes, such as a hole of zeros that a
// crashed server left in a log, replaces many rows, so its bytes also count as a loss.

// longLines are the lines of a file that are much too long. A unit sees only its own
// part of such a line; the parts are added up in the order of the input, so that the
// sum does not depend on how the input was cut.
type longLines struct {
	Line   int64 `json:"line"`   // of the first
	Offset int64 `json:"offset"` // of the first
	Length int64 `json:"length"` // of the first
	Total  int64 `json:"total"`  // bytes of all of them

	Open     bool  `json:"open"`    // the last line that was too long goes on in the next unit
	AtLine   int64 `json:"at_line"` // where it begins
	AtOffset int64 `json:"at_offset"`
	Bytes    int64 `json:"bytes"` // what was seen of it

	Text int64 `json:"text"` // bytes of the file's text so far
	Lost int64 `json:"lost"` // stored bytes of the file that are lost anyway
}

// begin takes a line that is too long, and the number of its bytes in its unit.
func (l *longLines) begin(line, offset, bytes int64, open bool, maxLine int) {
	l.AtLine, l.AtOffset, l.Bytes, l.Open = line, offset, bytes, open
	if !open {
		l.end(maxLine)
	}
}

// goOn takes the beginning of a unit: the number of bytes of an open line in it.
func (l *longLines) goOn(bytes int64, open bool, maxLine int) {
	if !l.Open {
		return
	}
	l.Bytes += bytes
	if !open {
		l.end(maxLine)
	}
}

// end ends the last line.
func (l *longLines) end(maxLine int) {
	l.Open = false
	if l.Bytes <= 2*int64(maxLine) {
		return // a row that is somewhat longer than allowed
	}
	if l.Total == 0 {
		l.Line, l.Offset, l.Length = l.AtLine, l.AtOffset, l.Bytes
	}
	l.Total += l.Bytes
}

// damage returns the loss by a file's long lines: they lose the same share of its stored bytes as
// they take of its text. It is nil if there are none.
func (l *longLines) damage(file source.File, maxLine int) *Damage {
	if l.Open {
		l.end(maxLine)
	}
	if l.Total == 0 {
		return nil
	}
	bytes := l.Total
	if file.Compression != source.NoCompression {
		bytes = int64(float64(file.Size-l.Lost) * (float64(l.Total) / float64(max(l.Text, l.Total))))
	}
	return &Damage{
		Cause:  fmt.Sprintf("it has a line of %d bytes, which is damage or a row that max_line_bytes (%d) does not allow", l.Length, maxLine),
		Offset: l.Offset, Bytes: bytes, Rows: -1,
	}
}
