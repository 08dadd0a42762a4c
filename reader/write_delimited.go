package reader

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

// delimitedWriter writes Criteo, CSV and TSV.
type delimitedWriter struct {
	w         *bufio.Writer
	columns   []Column
	delimiter byte
	quoted    bool
	null      string // "": none
	line      []byte
}

func newDelimitedWriter(s *Schema, w io.Writer) (*delimitedWriter, error) {
	d := &delimitedWriter{
		w: bufio.NewWriterSize(w, writeBufferBytes), columns: s.Columns, delimiter: s.Delimiter, quoted: s.Quoting == QuotingRFC4180,
	}
	if len(s.NullValues) > 0 {
		d.null = s.NullValues[0]
	}
	if s.Header {
		names := make([][]byte, len(s.Columns))
		for i := range s.Columns {
			names[i] = []byte(s.Columns[i].Name)
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
			d.line = append(d.line, d.delimiter)
		}
		// The reader cuts the file into lines before it looks at quotes, so quotes
		// would not help.
		if bytes.ContainsAny(cell, "\r\n") {
			return fmt.Errorf("column %s: the cell %q contains a line end", d.columns[i].Name, rowtext.Excerpt(cell))
		}
		special := bytes.IndexByte(cell, d.delimiter) >= 0
		if special && !d.quoted {
			return fmt.Errorf("column %s: the delimiter %q is in the cell %q", d.columns[i].Name, d.delimiter, rowtext.Excerpt(cell))
		}
		// A row whose only cell is empty must not become an empty line, which readers
		// skip.
		if len(cell) == 0 && len(cells) == 1 && !d.quoted && d.null != "" {
			cell = []byte(d.null)
		}
		if d.quoted && (special || bytes.IndexByte(cell, '"') >= 0 || (len(cell) == 0 && len(cells) == 1)) {
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
