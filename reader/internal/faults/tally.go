package faults

import (
	"fmt"
	"io"
	"log/slog"

	"aibox/reader/source"
)

// Limits says how much may be wrong with the input before reading ends. A negative value means no
// limit.
type Limits struct {
	BadRows      int64   // that may be bad or lost
	BadFraction  float64 // of all rows that may be bad
	LostFraction float64 // of the input's stored bytes that may be lost
	LineBytes    int     // a line of more than twice as much is a loss
}

// Input describes the input that the limits apply to.
type Input struct {
	Bytes int64 // that all its files have as stored
	Files int
	Mixed bool // the files are not all compressed in the same way
}

// Counts are the bad and the lost rows of an input.
type Counts struct {
	BadRows int64 `json:"bad_rows"`
	// Bad lists the reasons that occurred, each with its first row.
	Bad []ReasonCount `json:"bad,omitempty"`
	// Lost lists the files of which a part could not be read. Lost rows are neither bad nor good.
	Lost      []Loss `json:"lost,omitempty"`
	LostBytes int64  `json:"lost_bytes"` // of all files
	LostRows  int64  `json:"lost_rows"`  // of all files, known or estimated
}

// State is what a tally knows besides its counts at the beginning of a unit.
type State struct {
	Long      longLines `json:"long_lines,omitzero"`
	FileStart SoFar     `json:"file_start"` // what was read of the input before the file's first row

	MissingBytes int64   `json:"missing_bytes"` // that are assumed to be missing from files that end too early
	UnitRows     int64   `json:"unit_rows"`     // this and the next two: see pace
	Density      float64 `json:"density"`
	InputRows    int64   `json:"input_rows"` // -1: not known

	// QuarantineBytes and QuarantineRows are what was written to the quarantine.
	QuarantineBytes int64 `json:"quarantine_bytes"`
	QuarantineRows  int   `json:"quarantine_rows"`
}

// Tally counts what is wrong with an input, in its order, writes it to the quarantine, and applies the
// limits. It is for one goroutine.
type Tally struct {
	limits     Limits
	quarantine *quarantine
	pace       *pace
	bad        badTally
	loss       lossTally

	file      source.File // that is being read
	fileStart SoFar
	long      longLines // of the file
}

// New returns the Tally of an input. The quarantine out gets all losses and at most the given
// number of bad rows; a nil out gets nothing. REQUIRES: Restore is called before anything else.
func New(l Limits, in Input, out io.Writer, rows int, logger *slog.Logger) *Tally {
	q, p := newQuarantine(out, rows), newPace(in.Bytes, in.Mixed)
	return &Tally{
		limits: l, quarantine: q, pace: p,
		bad: badTally{maxRows: l.BadRows, maxFraction: l.BadFraction, pace: p, quarantine: q, logger: logger},
		loss: lossTally{
			maxFraction: l.LostFraction, total: in.Bytes, average: in.Bytes / int64(in.Files), quarantine: q, logger: logger,
		},
	}
}

// Restore continues at the beginning of a unit of the file, when read stored bytes have been read.
func (t *Tally) Restore(file source.File, s *State, c *Counts, read int64) {
	t.file, t.fileStart, t.long = file, s.FileStart, s.Long
	t.bad.restore(c)
	t.loss.restore(c, s.MissingBytes)
	t.pace.read, t.pace.inUnit, t.pace.density, t.pace.rows = read, s.UnitRows, s.Density, s.InputRows
	t.quarantine.restore(s.QuarantineRows, s.QuarantineBytes)
}

// State is the state at the beginning of a unit.
func (t *Tally) State() State {
	s := State{
		Long: t.long, FileStart: t.fileStart, MissingBytes: t.loss.missing,
		UnitRows: t.pace.inUnit, Density: t.pace.density, InputRows: t.pace.rows,
	}
	s.QuarantineRows, s.QuarantineBytes = t.quarantine.written()
	return s
}

// Counts are the bad and lost rows so far.
func (t *Tally) Counts() Counts {
	return Counts{BadRows: t.bad.total, Bad: t.bad.counts(), Lost: t.loss.lost, LostBytes: t.loss.bytes, LostRows: t.loss.rows}
}

// Worst is the most frequent reason of bad rows.
func (t *Tally) Worst() ReasonCount { return t.bad.worst() }

// InputRows is how many rows the input has; -1: not known.
func (t *Tally) InputRows() int64 { return t.pace.rows }

// Rows counts rows of the unit that is being read, good and bad ones.
func (t *Tally) Rows(n int) { t.pace.inUnit += int64(n) }

// Bad counts one bad row, the rows-th row of the input. It returns a *BadRowsError when a limit is
// exceeded, whatever the rest of the input turns out to be, a *LostDataError when one is exceeded
// together with the lost rows, or the quarantine's write error.
func (t *Tally) Bad(row BadRow, rows int64) error {
	if err := t.bad.add(row, rows); err != nil {
		return err
	}
	return t.checkRows()
}

// checkRows applies the limit on the number of bad rows, to which lost ones count.
func (t *Tally) checkRows() error {
	if most := t.limits.BadRows; most >= 0 && t.bad.total+t.loss.rows > most {
		limit := fmt.Sprintf("%s, since %d rows are bad and %d are lost", limitOfBadRows(most), t.bad.total, t.loss.rows)
		return t.loss.failure(t.loss.total, limit)
	}
	return nil
}

// LongLine takes a bad row that is longer than limits.LineBytes: where it begins, how many of its bytes
// are in its unit, and whether it goes on in the next one.
func (t *Tally) LongLine(line, offset, bytes int64, open bool) {
	t.long.begin(line, offset, bytes, open, t.limits.LineBytes)
}

// Head takes the beginning of a unit: the number of its bytes that belong to a line that began in
// an earlier unit, and whether that line continues in the next one.
func (t *Tally) Head(bytes int64, open bool) { t.long.goOn(bytes, open, t.limits.LineBytes) }

// Read counts stored bytes of the input as read. textEnd is the offset in the file's text that they
// reach, or 0 if more bytes of their unit follow.
func (t *Tally) Read(stored, textEnd int64) {
	t.long.Text = max(t.long.Text, textEnd)
	if stored > 0 {
		t.pace.unit(stored)
	}
}

// Lose counts a loss in the block whose first line has the number firstLine. so is what was read of
// the input, including what is lost. It returns a *LostDataError as soon as a limit is certainly
// exceeded.
func (t *Tally) Lose(firstLine int64, d *Damage, so SoFar) error {
	t.long.Lost += d.Bytes
	so.Bytes -= d.Bytes
	inFile := SoFar{Rows: so.Rows - t.fileStart.Rows, Bytes: so.Bytes - t.fileStart.Bytes}
	return t.lose(firstLine, d, inFile, so)
}

func (t *Tally) lose(firstLine int64, d *Damage, inFile, inInput SoFar) error {
	if err := t.loss.add(t.file, firstLine, d, inFile, inInput); err != nil {
		return err
	}
	return t.checkRows()
}

// Enter ends the current file and starts the next one. so is what was read of the input before it.
func (t *Tally) Enter(file source.File, so SoFar) error {
	if err := t.EndFile(so.Rows); err != nil {
		return err
	}
	t.file, t.fileStart = file, so
	return nil
}

// EndFile ends the current file, after the given number of rows of the input: lines that are much
// too long are measured against the whole file and counted as a loss.
func (t *Tally) EndFile(rows int64) error {
	l := t.long
	t.long = longLines{}
	d := l.damage(t.file, t.limits.LineBytes)
	if d == nil {
		return nil
	}
	inFile := SoFar{Rows: rows - t.fileStart.Rows, Bytes: t.file.Size - l.Lost - d.Bytes}
	return t.lose(l.Line, d, inFile, t.fileStart)
}

// Judge applies the limits at the end of the input, of which so was read.
func (t *Tally) Judge(so SoFar) error {
	if err := t.bad.check(so.Rows); err != nil {
		return err
	}
	return t.loss.check(min(so.Bytes, t.loss.total))
}
