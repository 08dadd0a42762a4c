package faults

import (
	"fmt"
	"log/slog"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
)

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
	pace        *pace
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

// check applies the limit on the share of bad rows at the end of the input.
func (t *badTally) check(rows int64) error {
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
