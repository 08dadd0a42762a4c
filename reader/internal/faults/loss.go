package faults

import (
	"errors"
	"fmt"
	"io"

	"aibox/internal/humanize"
)

// Loss is what could not be read of one file, because its data are damaged or its
// end is missing. Bytes counts stored bytes, so that the losses of all files and
// formats can be compared with the size of the whole input:
//
//   - After damage in compressed data, everything up to the file's end is lost
//     (see source.Decompressor.ValidBytes).
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

// Damage is what a worker reports of a loss.
type Damage struct {
	Cause  string
	Offset int64 // -1 in Parquet
	Line   int64 // lines of the block before it
	Bytes  int64 // stored bytes that are lost, without those that are missing from the file
	Rows   int64 // -1: not known
	Cut    bool  // the end of the file is missing
}

// CutShort says whether an error of a decompressor means that the end is missing.
func CutShort(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
