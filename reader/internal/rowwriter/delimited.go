package rowwriter

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"aibox/reader/internal/rowtext"
)

// writeBufferBytes is how many bytes are gathered before a write to the file or the
// compressor.
const writeBufferBytes = 64 << 10

// Delimited says how cells are written in a line.
type Delimited struct {
	Columns   []string // names
	Header    bool     // the first line has the names
	Delimiter byte
	Quoted    bool   // cells are quoted where it is needed (RFC 4180)
	Null      string // how a missing value can be written besides as an empty cell; "": not at all
}

// delimitedWriter writes Criteo, CSV and TSV.
type delimitedWriter struct {
	w *bufio.Writer
	Delimited
	line []byte
}

// NewDelimited returns an Encoder of lines with a cell for each column.
func NewDelimited(w io.Writer, how Delimited) (Encoder, error) {
	d := &delimitedWriter{w: bufio.NewWriterSize(w, writeBufferBytes), Delimited: how}
	if d.Header {
		names := make([][]byte, len(d.Columns))
		for i, name := range d.Columns {
			names[i] = []byte(name)
		}
		if err := d.Encode(names); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		if err := d.Commit(); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
	}
	return d, nil
}

func (d *delimitedWriter) Encode(cells [][]byte) error {
	d.line = d.line[:0]
	for i, cell := range cells {
		if i > 0 {
			d.line = append(d.line, d.Delimiter)
		}
		// The reader cuts the file into lines before it looks at quotes, so quotes
		// would not help.
		if bytes.ContainsAny(cell, "\r\n") {
			return fmt.Errorf("column %s: the cell %s contains a line end", d.Columns[i], rowtext.Shown(cell))
		}
		special := bytes.IndexByte(cell, d.Delimiter) >= 0
		if special && !d.Quoted {
			return fmt.Errorf("column %s: the delimiter %q is in the cell %s", d.Columns[i], d.Delimiter, rowtext.Shown(cell))
		}
		// A row whose only cell is empty must not become an empty line, which readers
		// skip.
		if len(cell) == 0 && len(cells) == 1 && !d.Quoted && d.Null != "" {
			cell = []byte(d.Null)
		}
		if d.Quoted && (special || bytes.IndexByte(cell, '"') >= 0 || (len(cell) == 0 && len(cells) == 1)) {
			d.line = append(d.line, '"')
			d.line = append(d.line, bytes.ReplaceAll(cell, []byte(`"`), []byte(`""`))...)
			d.line = append(d.line, '"')
		} else {
			d.line = append(d.line, cell...)
		}
	}
	d.line = append(d.line, '\n')
	return nil
}

func (d *delimitedWriter) Commit() error {
	_, err := d.w.Write(d.line)
	return err
}

func (d *delimitedWriter) Close() error { return d.w.Flush() }
