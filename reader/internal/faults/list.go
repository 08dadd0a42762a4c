package faults

import (
	"encoding/base64"
	"unicode/utf8"

	"aibox/reader/internal/rowtext"
)

// List is a list of bad rows, in the order of their file. Good rows are between them.
type List struct {
	Entries []Entry
	details []badDetail
	seen    uint32 // bit r: there is a row of reason r
}

// Entry is one bad row.
type Entry struct {
	At     int32 // number of good rows before it
	Line   int32 // number of lines before it
	detail int32 // into details, or -1
	reason Reason
	Offset int64
	Length int64 // of a line that is too long: its bytes in the unit; else 0
}

// badDetail holds the texts that describe a bad row to people.
type badDetail struct{ detail, row, base64 string }

// Reset empties the list and keeps its memory.
func (l *List) Reset() { l.Entries, l.details, l.seen = l.Entries[:0], l.details[:0], 0 }

// Add appends the row at the place of e. The first rows, up to the number texts, and the first of
// each reason keep their text, unless hide is set.
func (l *List) Add(e Entry, f Fault, row []byte, texts int, hide bool) {
	first := l.seen&(1<<f.Reason) == 0
	l.seen |= 1 << f.Reason
	if hide {
		row = nil
		if f.At == 0 {
			f.Cell = nil
		}
	}
	e.reason, e.detail = f.Reason, -1
	if first || len(l.details) < texts {
		e.detail = int32(len(l.details))
		l.details = append(l.details, badDetail{f.String(), rowtext.Excerpt(row), rawExcerpt(row)})
	}
	l.Entries = append(l.Entries, e)
}

// Describe describes an entry of the list, whose first line has the number firstLine in the file.
func (l *List) Describe(e *Entry, uri string, firstLine int64) BadRow {
	row := BadRow{URI: uri, Line: firstLine + int64(e.Line), Offset: e.Offset, Reason: e.reason}
	if e.detail >= 0 {
		d := &l.details[e.detail]
		row.Detail, row.Row, row.RowBase64 = d.detail, d.row, d.base64
	}
	return row
}

// rawExcerpt holds the bytes of the excerpt where they are not UTF-8, else it is "".
func rawExcerpt(row []byte) string {
	if prefix := rowtext.Prefix(row); !utf8.Valid(prefix) {
		return base64.StdEncoding.EncodeToString(prefix)
	}
	return ""
}
