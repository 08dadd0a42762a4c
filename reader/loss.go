package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
)

// Loss is what could not be read of one file, because its data are damaged or its
// end is missing. Bytes counts stored bytes, so that the losses of all files and
// formats can be compared with the size of the whole input:
//
//   - After damage in compressed data, everything up to the file's end is lost
//     (see source.Decompressor.Sound).
//   - A line of text of more than twice Options.MaxLineBytes is a bad row. Bytes is
//     then the file's size times the share of the file's text that the line is.
//   - A damaged page of Parquet loses the rest of its row group. Bytes is then the
//     file's size times the share of the file's rows that are lost.
//   - A file whose header or footer cannot be read because of damage is lost as a whole.
//   - If a file ends too early, it cannot be known how much is missing. The missing
//     part is assumed to be as large as the file itself, or as what the file lacks
//     to the average size of the input's files, whichever is more.
type Loss struct {
	URI    string `json:"uri"`
	Line   int64  `json:"line"`   // of the first lost row, as in BadRow
	Offset int64  `json:"offset"` // of that row, as in BadRow
	Bytes  int64  `json:"lost_bytes"`
	Rows   int64  `json:"lost_rows"` // 0: unknown
	// Estimated says that Rows is an estimate from the rows that were read of the
	// file, or of the input where none were read of the file.
	Estimated bool   `json:"lost_rows_estimated,omitempty"`
	Cut       bool   `json:"end_is_missing,omitempty"` // Bytes is an assumption
	Cause     string `json:"cause"`                    // of the first loss, where there are several
}

// String is one line for people.
func (l Loss) String() string {
	where := fmt.Sprintf("%s from line %d (byte %d) on", l.URI, l.Line, l.Offset)
	if l.Offset < 0 {
		where = fmt.Sprintf("%s from row %d on", l.URI, l.Line)
	}
	return fmt.Sprintf("%s: %s: %s", where, l.Cause, l.size())
}

// size says how much is lost.
func (l Loss) size() string {
	rows := humanize.Count(l.Rows, "row")
	if l.Rows == 0 {
		rows = "an unknown number of rows"
	} else if l.Estimated {
		rows = "about " + rows
	}
	bytes := humanize.Count(l.Bytes, "byte")
	if l.Cut {
		return fmt.Sprintf("it is not known how much is missing; %s in %s are counted as lost", rows, bytes)
	}
	return fmt.Sprintf("%s in %s are lost", rows, bytes)
}

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

// damage is what a worker reports of a loss.
type damage struct {
	cause  string
	offset int64 // -1 in Parquet
	line   int64 // lines of the block before it
	bytes  int64 // stored bytes that are lost, without those that are missing from the file
	rows   int64 // -1: not known
	cut    bool  // the end of the file is missing
}

// cutShort says whether a decompressor's error means that the end is missing.
func cutShort(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// partOfRow says whether a faulty last line without a line end looks like the
// beginning of a row, and so like a file whose end is missing: it has at least one
// whole cell, and its only fault is that the other cells are missing. A remark below
// the rows, for example, has no cells.
func partOfRow(line []byte, f fault, s Schema) bool {
	switch f.reason {
	case ReasonColumns:
		return f.found > 1 && f.found < f.want
	case ReasonQuote:
		return bytes.IndexByte(line, s.Delimiter) >= 0
	case ReasonFeature:
		return len(f.cell) < len(line) && bytes.HasSuffix(line, f.cell)
	}
	return false
}

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
func (t *lossTally) add(file *inputFile, firstLine int64, d *damage, inFile, inInput readSoFar) error {
	l := Loss{
		URI: file.URI, Line: firstLine + d.line, Offset: d.offset, Bytes: d.bytes, Rows: d.rows, Cut: d.cut, Cause: d.cause,
	}
	if d.cut {
		missing := max(file.Size, t.average-file.Size)
		t.missing += missing
		l.Bytes += missing
	}
	if d.rows < 0 {
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
	return t.judge(t.total)
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

// judge applies the limit, where total bytes of the input were to be read.
func (t *lossTally) judge(total int64) error {
	if t.maxFraction >= 0 && float64(t.bytes) > t.maxFraction*float64(total+t.missing) {
		return t.failure(total, fmt.Sprintf("the limit of %v of the input (max_lost_fraction)", t.maxFraction))
	}
	return nil
}

func (t *lossTally) failure(total int64, limit string) error {
	return &LostDataError{Lost: t.lost, Bytes: t.bytes, Total: total + t.missing, Limit: limit}
}

// readSoFar is a number of stored bytes that were read and how many rows they held.
type readSoFar struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// rowsIn estimates how many rows other bytes hold.
func (r readSoFar) rowsIn(bytes int64) int64 {
	if r.Bytes <= 0 {
		return 0
	}
	return int64(float64(r.Rows) * (float64(bytes) / float64(r.Bytes)))
}
