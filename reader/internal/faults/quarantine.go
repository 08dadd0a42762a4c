package faults

import (
	"encoding/json"
	"fmt"
	"io"
)

// quarantine writes at most the given number of bad rows, and all losses, as one JSON
// object per line. A nil *quarantine writes nothing.
type quarantine struct {
	out   io.Writer
	lines *json.Encoder // to the quarantine itself, which counts the bytes
	most  int
	rows  int   // bad rows that were written
	bytes int64 // that were written
}

func newQuarantine(out io.Writer, rows int) *quarantine {
	if out == nil || rows <= 0 {
		return nil
	}
	q := &quarantine{out: out, most: rows}
	q.lines = json.NewEncoder(q)
	q.lines.SetEscapeHTML(false) // the file is for people and scripts, not for browsers
	return q
}

// add writes the row while there is room.
func (q *quarantine) add(row *BadRow) error {
	if q == nil || q.rows >= q.most {
		return nil
	}
	q.rows++
	return q.write(row)
}

// lose writes a loss, even if no further bad rows are written: losses are few, and
// each may stand for many rows.
func (q *quarantine) lose(l *Loss) error {
	if q == nil {
		return nil
	}
	return q.write(&BadRow{
		URI: l.URI, Line: l.Line, Offset: l.Offset, Reason: ReasonStream, Detail: l.Cause, LostBytes: l.Bytes, LostRows: l.Rows,
	})
}

func (q *quarantine) write(row *BadRow) error {
	if err := q.lines.Encode(row); err != nil {
		return fmt.Errorf("reader: quarantine: %w", err)
	}
	return nil
}

// Write is io.Writer's.
func (q *quarantine) Write(p []byte) (int, error) {
	n, err := q.out.Write(p)
	q.bytes += int64(n)
	return n, err
}

// written is how many bad rows and bytes were written.
func (q *quarantine) written() (rows int, bytes int64) {
	if q == nil {
		return 0, 0
	}
	return q.rows, q.bytes
}

// restore goes on after what an earlier reading has written.
func (q *quarantine) restore(rows int, bytes int64) {
	if q != nil {
		q.rows, q.bytes = rows, bytes
	}
}
