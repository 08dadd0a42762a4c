package reader

import (
	"fmt"

	"aibox/reader/source"
)

// A line that is longer than MaxLineBytes is a bad row. One of gigabytes, such as a
// hole of zeros that a crashed server left in a log, stands in the place of many rows,
// so that it is weighed by its bytes, too, as a loss.

// longLines are the lines of a file that are much too long. A unit sees only its own
// part of such a line; the parts are added up in the order of the input, so that the
// sum does not depend on how the input was cut.
type longLines struct {
	line, offset int64 // of the first
	length       int64 // of the first
	total        int64 // bytes of all of them

	open             bool  // the last line that was too long goes on in the next unit
	atLine, atOffset int64 // where it begins
	bytes            int64 // what was seen of it

	text int64 // bytes of the file's text so far
	lost int64 // stored bytes of the file that are lost anyway
}

// begin takes a line that is too long, of which so many bytes are in its unit.
func (l *longLines) begin(line, offset, bytes int64, open bool, maxLine int) {
	l.atLine, l.atOffset, l.bytes, l.open = line, offset, bytes, open
	if !open {
		l.end(maxLine)
	}
}

// enter takes the beginning of a block: how many bytes of an open line are in it.
func (l *longLines) enter(b *block, maxLine int) {
	if !l.open || b.head < 0 {
		return
	}
	l.bytes += b.head
	if !b.headOpen {
		l.end(maxLine)
	}
}

// end ends the last line.
func (l *longLines) end(maxLine int) {
	l.open = false
	if l.bytes <= 2*int64(maxLine) {
		return // a row that is somewhat longer than allowed
	}
	if l.total == 0 {
		l.line, l.offset, l.length = l.atLine, l.atOffset, l.bytes
	}
	l.total += l.bytes
}

// weighLongLines weighs the long lines of the file that has been read: the share of
// its stored bytes that they are of its text.
func (r *rows) weighLongLines() error {
	l := r.long
	r.long = longLines{}
	if l.open {
		l.end(r.options.MaxLineBytes)
	}
	if l.total == 0 {
		return nil
	}
	bytes := l.total
	if r.file.Compression != source.NoCompression {
		bytes = int64(float64(r.file.Size-l.lost) * (float64(l.total) / float64(max(l.text, l.total))))
	}
	d := &damage{
		cause:  fmt.Sprintf("it has a line of %d bytes, which is damage or a row that max_line_bytes (%d) does not allow", l.length, r.options.MaxLineBytes),
		offset: l.offset, bytes: bytes, rows: -1,
	}
	inFile := readSoFar{rows: r.counts.Rows - r.begin.rows, bytes: r.file.Size - l.lost - bytes}
	if err := r.loss.add(r.file, l.line, d, inFile, r.begin); err != nil {
		return err
	}
	return r.judgeRows()
}
