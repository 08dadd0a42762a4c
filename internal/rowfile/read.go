package rowfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/errkind"
	"aibox/internal/parquetfile"
	"aibox/sparsetable"
)

// FormatError says that the file is not a Parquet file, is damaged, or does not have the
// columns that rows of a table need.
type FormatError struct {
	File string
	Err  error
}

func (e *FormatError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FormatError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*FormatError) ErrorKind() errkind.Kind { return errkind.Data }

// ErrNoRows says that the file has no rows, and that its metadata do not say how long the
// rows of its table are. A FormatError wraps it.
var ErrNoRows = errors.New("there are no rows and no metadata that say how long values are")

// Reader reads the rows of a file. It is a sparsetable.RowSource.
type Reader struct {
	name   string
	file   *parquet.File
	bytes  io.ReaderAt // of file
	layout sparsetable.Layout
	values []float32 // of the present row
	row    []float32

	rounding sparsetable.Rounding
	columns  [columnCount]leaf
	groups   []parquet.RowGroup
	begun    int   // of groups
	left     int64 // rows of the present one
	done     int64 // rows read
	rows     int64 // of all groups
}

// Columns of a row.
const (
	columnKey = iota
	columnValues
	columnState
	columnShow
	columnClick
	columnLastSeen
	columnCountOf
	columnCount
)

var columnNames = [columnCount]string{"key", "values", "state", "show", "click", "last_seen", "count"}

// NewReader opens a file of that many bytes; errors call it name. The caller closes r.
func NewReader(r io.ReaderAt, bytes int64, name string) (*Reader, error) {
	x := &Reader{name: name, rounding: sparsetable.NewRounding(0, 0)}
	return x, x.guard(func() error { return x.open(r, bytes) })
}

// guard turns errors of do, and panics of the library on damaged files, into FormatErrors.
// If a read of the file failed, the FormatError wraps its error.
func (x *Reader) guard(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("damaged Parquet file: %v", fault)
		}
		if errors.Is(err, io.EOF) { // callers must not mistake it for the end of the rows
			err = fmt.Errorf("damaged Parquet file: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			err = &FormatError{x.name, err}
		}
	}()
	return do()
}

func (x *Reader) open(r io.ReaderAt, bytes int64) (err error) {
	readable, err := checkFooter(r, bytes)
	if err != nil {
		return err
	}
	x.file, err = parquet.OpenFile(readable, bytes, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return notParquet(err)
	}
	for i := range x.columns {
		if err := x.columns[i].find(x.file.Schema(), columnNames[i]); err != nil {
			return err
		}
	}
	x.bytes = r
	for _, i := range []int{columnKey, columnValues} {
		if x.columns[i].index < 0 {
			return fmt.Errorf("there is no column %q; rows of a table have %v", columnNames[i], columnNames)
		}
	}
	for i := range x.columns {
		if err := x.columns[i].check(i); err != nil {
			return err
		}
	}
	var used []int
	for i := range x.columns {
		if x.columns[i].index >= 0 {
			used = append(used, x.columns[i].index)
		}
	}
	if err := parquetfile.CheckCodecs(x.file, used); err != nil {
		return err
	}
	x.groups = x.file.RowGroups()
	for _, g := range x.groups {
		x.rows += g.NumRows()
	}
	if err := x.findLayout(); err != nil {
		return err
	}
	x.values, x.row = make([]float32, x.layout.ValueDim), make([]float32, x.layout.Words())
	return nil
}

// SetFormat makes Next return rows with values in that format. Values that the format
// cannot represent are rounded stochastically; the random numbers depend on the key.
func (x *Reader) SetFormat(f sparsetable.ValueFormat) {
	x.layout.Format = f
	x.row = make([]float32, x.layout.Words())
}

// notParquet gives a better text to the library's errors about the beginning and the end of
// a file.
func notParquet(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not a Parquet file: it is too short")
	}
	return fmt.Errorf("not a Parquet file that can be read: %w", err)
}

// findLayout finds the layout in the metadata, or takes that of the first row.
func (x *Reader) findLayout() error {
	if text, ok := x.file.Lookup(layoutKey); ok {
		if err := json.Unmarshal([]byte(text), &x.layout); err != nil {
			return fmt.Errorf("metadata %s: %w", layoutKey, err)
		}
	} else {
		first := slices.IndexFunc(x.groups, func(g parquet.RowGroup) bool { return g.NumRows() > 0 })
		if first < 0 {
			return ErrNoRows
		}
		var err error
		if x.layout.ValueDim, err = x.columns[columnValues].firstLength(x.file, x.bytes, first); err != nil {
			return err
		}
		if x.layout.StateDim, err = x.columns[columnState].firstLength(x.file, x.bytes, first); err != nil {
			return err
		}
	}
	return x.layout.Validate()
}

// Layout is the layout of the rows that Next returns. Its format is that of the table from
// which the file was written, unless SetFormat has set another one.
func (x *Reader) Layout() sparsetable.Layout { return x.layout }

// Rows is the number of the file's rows.
func (x *Reader) Rows() int64 { return x.rows }

// Next returns the next row, which is valid until the next call. After the last row it
// returns io.EOF. All other errors are *FormatError.
func (x *Reader) Next() (key uint64, row []float32, err error) {
	more := false
	err = x.guard(func() error {
		if more, err = x.nextGroup(); !more || err != nil {
			return err
		}
		key, err = x.next()
		return err
	})
	if err == nil && !more {
		err = io.EOF
	}
	return key, x.row, err
}

// nextGroup moves to the next row group that has rows, unless rows of the present one are
// left. It reports whether there is a row group with rows.
func (x *Reader) nextGroup() (more bool, err error) {
	for x.left == 0 {
		group := x.begun
		if group == len(x.groups) {
			return false, nil
		}
		x.begun++
		x.left = x.groups[group].NumRows()
		for i := range x.columns {
			if err := x.columns[i].begin(x.file, x.bytes, group); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

func (x *Reader) next() (key uint64, err error) {
	x.left--
	x.done++
	var k, show, click parquet.Value
	for _, c := range []struct {
		column int
		into   *parquet.Value
	}{{columnKey, &k}, {columnShow, &show}, {columnClick, &click}} {
		if *c.into, err = x.columns[c.column].one(); err != nil {
			return 0, x.at(c.column, err)
		}
	}
	var st sparsetable.RowStats
	if st.LastSeen, err = x.columns[columnLastSeen].counter(); err != nil {
		return 0, x.at(columnLastSeen, err)
	}
	if st.Count, err = x.columns[columnCountOf].counter(); err != nil {
		return 0, x.at(columnCountOf, err)
	}
	if x.columns[columnCountOf].index < 0 {
		st.Count = 1
	}
	if err := x.columns[columnValues].list(x.values); err != nil {
		return 0, x.at(columnValues, err)
	}
	x.layout.StoreValues(x.row, x.values, k.Uint64(), x.rounding)
	if err := x.columns[columnState].list(x.layout.State(x.row)); err != nil {
		return 0, x.at(columnState, err)
	}
	if x.columns[columnShow].index >= 0 {
		st.Show = show.Float()
	}
	if x.columns[columnClick].index >= 0 {
		st.Click = click.Float()
	}
	x.layout.SetStats(x.row, st)
	return k.Uint64(), nil
}

// at adds to err the row and the column where it happened.
func (x *Reader) at(column int, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("row %d, column %s: %w", x.done, columnNames[column], err)
}

// Close releases the reader's memory. It does not close the file.
func (x *Reader) Close() error {
	var errs []error
	for i := range x.columns {
		errs = append(errs, x.columns[i].values.Close())
	}
	return errors.Join(errs...)
}
