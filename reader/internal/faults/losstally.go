package faults

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
)

// LostDataError stops reading because more of the input is lost than MaxLostFraction
// allows.
type LostDataError struct {
	Lost  []Loss // by file
	Bytes int64  // that are lost
	Total int64  // of the input, including the bytes that are assumed to be missing
	Limit string
}

// maxShownLosses is how many files the error lists.
const maxShownLosses = 5

// Error names the files and says what to do.
func (e *LostDataError) Error() string {
	share := 100.0
	if e.Total > 0 {
		share = 100 * float64(e.Bytes) / float64(e.Total)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "data are lost, %.3g %% of the input (%d of %d bytes), which exceeds %s: ", share, e.Bytes, e.Total, e.Limit)
	for i, l := range e.Lost[:min(len(e.Lost), maxShownLosses)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(l.String())
	}
	if more := len(e.Lost) - maxShownLosses; more > 0 {
		fmt.Fprintf(&b, "; and %s", humanize.Count(int64(more), "more file"))
	}
	b.WriteString(" (restore these files, leave them out, or raise the limit)")
	return b.String()
}

// ErrorKind sorts the error for exit codes and reports.
func (*LostDataError) ErrorKind() errkind.Kind { return errkind.LostData }

// lossTally adds up losses in the order of the input and applies the limit.
type lossTally struct {
	maxFraction float64 // < 0: no limit
	total       int64   // bytes of the input
	average     int64   // bytes of a file
	quarantine  *quarantine
	logger      *slog.Logger

	bytes   int64 // lost
	missing int64 // of them those that are assumed to be missing and are not part of total
	rows    int64 // lost, at least one for each loss
	lost    []Loss
}

// restore goes on from counts of an earlier reading.
func (t *lossTally) restore(c *Counts, missing int64) {
	t.bytes, t.rows, t.lost, t.missing = c.LostBytes, c.LostRows, c.Lost, missing
}

// add counts a loss in the file. inFile and inInput say what has been read of the
// file and of the whole input. It returns a *LostDataError as soon as the limit is
// certainly exceeded.
func (t *lossTally) add(file source.File, firstLine int64, d *Damage, inFile, inInput SoFar) error {
	l := Loss{
		URI: file.URI, Line: firstLine + d.Line, Offset: d.Offset, Bytes: d.Bytes, Rows: d.Rows, Cut: d.Cut, Cause: d.Cause,
	}
	if d.Cut {
		missing := max(file.Size, t.average-file.Size)
		t.missing += missing
		l.Bytes += missing
	}
	if d.Rows < 0 {
		l.Estimated = true
		if l.Rows = inFile.rowsIn(l.Bytes); l.Rows == 0 {
			l.Rows = inInput.rowsIn(l.Bytes)
		}
	}
	t.bytes += l.Bytes
	t.rows += max(l.Rows, 1)
	t.logger.Warn("data are lost", "uri", l.URI, "line", l.Line, "offset", l.Offset, "cause", l.Cause,
		"lost_bytes", l.Bytes, "lost_rows", l.Rows, "estimated", l.Estimated, "end_is_missing", l.Cut)
	if err := t.quarantine.lose(&l); err != nil {
		return err
	}
	t.lost = merge(t.lost, l)
	return t.check(t.total)
}

// merge adds a loss to a list that has one entry for each file. It does not change
// the old list, since another goroutine may be reading it.
func merge(list []Loss, l Loss) []Loss {
	if n := len(list); n > 0 && list[n-1].URI == l.URI {
		list = slices.Clone(list)
		last := &list[n-1]
		last.Bytes += l.Bytes
		last.Rows += l.Rows
		last.Estimated = last.Estimated || l.Estimated
		last.Cut = last.Cut || l.Cut
		return list
	}
	return append(list, l)
}

// check applies the limit, where total bytes of the input were to be read.
func (t *lossTally) check(total int64) error {
	if t.maxFraction >= 0 && float64(t.bytes) > t.maxFraction*float64(total+t.missing) {
		return t.failure(total, fmt.Sprintf("the limit of %v of the input (max_lost_fraction)", t.maxFraction))
	}
	return nil
}

func (t *lossTally) failure(total int64, limit string) error {
	return &LostDataError{Lost: t.lost, Bytes: t.bytes, Total: total + t.missing, Limit: limit}
}

// SoFar is a number of stored bytes that were read and how many rows they held.
type SoFar struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// rowsIn estimates how many rows other bytes hold.
func (r SoFar) rowsIn(bytes int64) int64 {
	if r.Bytes <= 0 {
		return 0
	}
	return int64(float64(r.Rows) * (float64(bytes) / float64(r.Bytes)))
}
