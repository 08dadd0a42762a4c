package reader

import (
	"encoding/json"
	"fmt"
	"io"
)

// rowPrefixBytes is how much of a bad row is kept for people to look at.
const rowPrefixBytes = 256

// quarantine writes as many bad rows as its field rows says, and all losses, as one
// JSON object per line. A nil *quarantine writes nothing.
type quarantine struct {
	out  *json.Encoder
	room int
}

func newQuarantine(out io.Writer, rows int) *quarantine {
	if out == nil || rows <= 0 {
		return nil
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false) // the file is for people and scripts, not for browsers
	return &quarantine{out: lines, room: rows}
}

// add writes the row while there is room.
func (q *quarantine) add(row *BadRow) error {
	if q == nil || q.room == 0 {
		return nil
	}
	q.room--
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
	if err := q.out.Encode(row); err != nil {
		return fmt.Errorf("reader: quarantine: %w", err)
	}
	return nil
}
