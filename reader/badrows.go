package reader

import (
	"fmt"
	"log/slog"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
)

// ErrNoExamples is returned (wrapped) where the input holds no example at all:
// no URI, only empty files, or nothing but bad rows within the limits.
var ErrNoExamples = errkind.New(errkind.Data, "no examples in the input")

// Reason says what is wrong with a bad row.
type Reason uint8

// The reasons.
const (
	reasonNone Reason = iota
	ReasonColumns
	ReasonNumber
	ReasonNotFinite
	ReasonLabel
	ReasonNoLabel
	ReasonWeight
	ReasonFeature
	ReasonUTF8
	ReasonQuote
	ReasonTooLong
	ReasonStream
	ReasonOutput // convert
	reasonCount
)

var reasonTexts = [reasonCount]string{
	ReasonColumns:   "wrong column count",
	ReasonNumber:    "unparsable number",
	ReasonNotFinite: "number is not finite",
	ReasonLabel:     "label is not 0 or 1",
	ReasonNoLabel:   "label is missing",
	ReasonWeight:    "example weight is not a number >= 0",
	ReasonFeature:   "malformed feature",
	ReasonUTF8:      "invalid UTF-8",
	ReasonQuote:     "bad quoting (a quoted cell must end on its line)",
	ReasonTooLong:   "line too long",
	ReasonStream:    "data are lost", // see Loss; it is in the quarantine, but not among the counts of bad rows
	ReasonOutput:    "cell that the output format cannot hold",
}

// String describes the reason in a few words.
func (r Reason) String() string {
	if r > reasonNone && r < reasonCount {
		return reasonTexts[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// MarshalText is String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Reason) UnmarshalText(text []byte) error {
	for i := reasonNone + 1; i < reasonCount; i++ {
		if reasonTexts[i] == string(text) {
			*r = i
			return nil
		}
	}
	return fmt.Errorf("reader: unknown reason %q", text)
}

// fault is what a decoder reports about a bad row. The zero fault means that the
// row is good.
type fault struct {
	reason Reason
	column string // "" where it is not about one column
	cell   []byte // into the row; only valid until the next row
	at     int    // ReasonUTF8: the position, from 1 on, of the first byte of the row that is not valid UTF-8; 0: unknown
	// ReasonColumns: how many cells there are and should be. More than want+1
	// are not counted.
	found, want int
}

// BadRow is one bad row, as written to the quarantine file.
type BadRow struct {
	URI string `json:"uri"`
	// Line counts from 1, header and empty lines included; in Parquet it is the
	// number of the row.
	Line int64 `json:"line"`
	// Offset of the row's first byte in the file, after decompression; -1 in
	// Parquet.
	Offset int64  `json:"offset"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"` // column and cell
	Row    string `json:"row"`              // the first bytes; U+FFFD replaces what is not UTF-8
	// RowBase64 holds the same bytes as they are, where they are not UTF-8.
	RowBase64 string `json:"row_base64,omitempty"`
	// LostBytes and LostRows say how much is lost from here on; see Loss.
	LostBytes int64 `json:"lost_bytes,omitempty"`
	LostRows  int64 `json:"lost_rows,omitempty"`
}

// String is one line for people.
func (b BadRow) String() string {
	where := fmt.Sprintf("%s line %d (byte %d)", b.URI, b.Line, b.Offset)
	if b.Offset < 0 {
		where = fmt.Sprintf("%s row %d", b.URI, b.Line)
	}
	if b.Detail != "" {
		return fmt.Sprintf("%s: %s: %s", where, b.Reason, b.Detail)
	}
	return fmt.Sprintf("%s: %s", where, b.Reason)
}

// ReasonCount is how many rows were bad for one reason.
type ReasonCount struct {
	Reason  Reason `json:"reason"`
	Rows    int64  `json:"rows"`
	Example BadRow `json:"example"` // the first
}

// String describes the count for an error about the most frequent reason.
func (c ReasonCount) String() string {
	return fmt.Sprintf("most often (%d) %s, for the first time at %s", c.Rows, c.Reason, c.Example)
}

// BadRowsError stops reading because more rows are bad than the options allow.
type BadRowsError struct {
	Rows, Bad int64 // up to the row that went past the limit
	Limit     string
	Worst     ReasonCount // the most frequent reason
}

// Error names the limit, the worst reason and the first row of that kind.
func (e *BadRowsError) Error() string {
	return fmt.Sprintf("%d of %d rows are bad, which exceeds %s; %s", e.Bad, e.Rows, e.Limit, e.Worst)
}

// ErrorKind sorts the error for exit codes and reports.
func (*BadRowsError) ErrorKind() errkind.Kind { return errkind.Data }

// badTally counts bad rows in the order of the input and applies the limits.
type badTally struct {
	maxRows     int64   // < 0: no limit
	maxFraction float64 // < 0: no limit
	pace        pace
	quarantine  *quarantine
	logger      *slog.Logger

	total   int64
	reasons [reasonCount]ReasonCount
}

// add counts one bad row, the rows-th row of the input. It returns a
// *BadRowsError when a limit is exceeded, whatever the rest of the input turns out
// to be, or the quarantine's write error.
func (t *badTally) add(row BadRow, rows int64) error {
	t.total++
	c := &t.reasons[row.Reason]
	c.Rows++
	if c.Rows == 1 {
		c.Reason, c.Example = row.Reason, row
		t.logger.Warn("bad row", "uri", row.URI, "line", row.Line, "offset", row.Offset,
			"reason", row.Reason.String(), "detail", row.Detail)
	}
	if err := t.quarantine.add(&row); err != nil {
		return err
	}
	if t.maxRows >= 0 && t.total > t.maxRows {
		return t.failure(rows, limitOfBadRows(t.maxRows))
	}
	if most, ok := t.pace.mostRows(rows); ok && t.maxFraction >= 0 && float64(t.total) > t.maxFraction*most {
		limit := t.limitOfShare()
		if most > float64(rows) {
			limit += fmt.Sprintf(", even if the rest of the input, %.0f rows at most, is good", most-float64(rows))
		}
		return t.failure(rows, limit)
	}
	return nil
}

// judge applies the limit on the share of bad rows at the end of the input.
func (t *badTally) judge(rows int64) error {
	if t.maxFraction >= 0 && float64(t.total) > t.maxFraction*float64(rows) {
		return t.failure(rows, t.limitOfShare())
	}
	return nil
}

func limitOfBadRows(most int64) string {
	return fmt.Sprintf("the limit of %s (max_bad_rows)", humanize.Count(most, "bad row"))
}

func (t *badTally) limitOfShare() string {
	return fmt.Sprintf("the limit of %v of all rows (max_bad_fraction)", t.maxFraction)
}

func (t *badTally) failure(rows int64, limit string) error {
	return &BadRowsError{Rows: rows, Bad: t.total, Limit: limit, Worst: t.worst()}
}

// worst is the most frequent reason.
func (t *badTally) worst() (worst ReasonCount) {
	for _, c := range t.reasons {
		if c.Rows > worst.Rows {
			worst = c
		}
	}
	return worst
}

// restore goes on from counts of an earlier reading.
func (t *badTally) restore(c *Counts) {
	t.total = c.BadRows
	for _, reason := range c.Bad {
		t.reasons[reason.Reason] = reason
	}
}

// counts lists the reasons that occurred.
func (t *badTally) counts() (list []ReasonCount) {
	for _, c := range t.reasons {
		if c.Rows > 0 {
			list = append(list, c)
		}
	}
	return list
}
