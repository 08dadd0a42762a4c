package reader

import (
	"encoding/json"
	"fmt"
	"io"
)

// rowPrefixBytes is how much of a bad row is kept for people to look at.
const rowPrefixBytes = 256

// quarantine writes the first rows bad rows, one JSON object a line. A nil
// *quarantine takes none.
type quarantine struct {
	out  io.Writer
	room int
}

func newQuarantine(out io.Writer, rows int) *quarantine {
	if out == nil || rows <= 0 {
		return nil
	}
	return &quarantine{out: out, room: rows}
}

// add writes the row while there is room.
func (q *quarantine) add(row *BadRow) error {
	if q == nil || q.room == 0 {
		return nil
	}
	q.room--
	line, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("reader: quarantine: %w", err)
	}
	if _, err := q.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("reader: quarantine: %w", err)
	}
	return nil
}
