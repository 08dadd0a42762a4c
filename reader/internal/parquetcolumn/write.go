package parquetcolumn

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// Limits on the rows and cells of a written row group; the latter matters with very many columns.
// Readers decode row groups in parallel, and the writer holds one in memory.
const (
	rowGroupRows  = 1 << 16
	rowGroupCells = 1 << 24
)

// Writer writes rows of text as Parquet (zstd inside). Numbers are optional doubles, texts
// optional strings, and lists are lists of strings, unless the column has another type.
//
// The first rows wait until it is known which columns repeat their values. Those get
// dictionaries: a reader then decodes each value of a row group once, and the file is smaller.
type Writer struct {
	out     io.Writer
	w       *parquet.GenericWriter[any] // nil: the first rows wait
	first   []parquet.Row
	waiting int // bytes of their texts
	columns []Written
	row     parquet.Row
	rows    [1]parquet.Row
}

// How many rows wait, or cells or bytes of text, whichever limit is reached first.
const (
	firstRows  = 4096
	firstCells = 1 << 20
	firstBytes = 4 << 20
)

// Written is a column of the rows that are written.
type Written struct {
	Name      string
	Type      parquet.Type // nil: text
	Number    bool         // the cells are numbers, around which there may be spaces; Type is nil
	List      bool         // a cell holds several values
	Separator string       // of a list's values; "": there is one
}

// NewWriter returns a writer of rows with these columns.
func NewWriter(w io.Writer, columns []Written) *Writer { return &Writer{out: w, columns: columns} }

// Encode prepares a row in place of the last one. It fails on a cell that its column cannot hold.
func (p *Writer) Encode(cells [][]byte) error {
	p.row = p.row[:0]
	for at := range p.columns {
		if err := p.add(at, cells[at]); err != nil {
			return fmt.Errorf("column %s: %w", p.columns[at].Name, err)
		}
	}
	return nil
}

// add adds the values of a cell, or null.
func (p *Writer) add(at int, cell []byte) error {
	c := &p.columns[at]
	if c.Number {
		cell = number.Trim(cell)
	}
	repetition := 0
	for len(cell) > 0 {
		value, rest := cell, []byte(nil)
		if c.List {
			value, rest = rowtext.Cut(cell, c.Separator)
		}
		if cell = rest; len(value) == 0 {
			continue
		}
		v, err := c.value(value)
		if err != nil {
			return err
		}
		p.row = append(p.row, v.Level(repetition, 1, at))
		repetition = 1
	}
	if repetition == 0 {
		p.row = append(p.row, parquet.NullValue().Level(0, 0, at))
	}
	return nil
}

// begin writes the waiting rows.
func (p *Writer) begin() error {
	columns, repeat := group{Group: parquet.Group{}}, p.repeating()
	for i := range p.columns {
		column := field{Node: p.columns[i].node(repeat[i]), name: p.columns[i].Name}
		columns.Group[column.name] = column.Node
		columns.fields = append(columns.fields, column)
	}
	p.w = parquet.NewGenericWriter[any](p.out, parquet.NewSchema("aibox", columns), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(int64(p.rowsOf(rowGroupCells, rowGroupRows))), parquet.CreatedBy("aibox", "", ""))
	_, err := p.w.WriteRows(p.first)
	p.first = nil
	return err
}

// rowsOf returns how many rows the given number of cells make: at least 1, and no more than most.
func (p *Writer) rowsOf(cells, most int) int {
	return min(max(cells/max(len(p.columns), 1), 1), most)
}

// repeating says which columns mostly repeat earlier values. In the first rows, up to three of four
// values may be new: later there are fewer new ones.
func (p *Writer) repeating() []bool {
	values, all := make([]map[string]struct{}, len(p.columns)), make([]int, len(p.columns))
	for i := range values {
		values[i] = map[string]struct{}{}
	}
	for _, row := range p.first {
		for _, v := range row {
			if i := v.Column(); !v.IsNull() {
				values[i][string(v.Bytes())] = struct{}{}
				all[i]++
			}
		}
	}
	repeat := make([]bool, len(p.columns))
	for i := range repeat {
		repeat[i] = 4*len(values[i]) <= 3*all[i]
	}
	return repeat
}

// group is a group of columns that keeps their order; that of the library
// sorts them by name.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g group) Fields() []parquet.Field { return g.fields }

// field is a column of a group.
type field struct {
	parquet.Node
	name string
}

func (f field) Name() string { return f.name }

// Value is called only where Go values are written; this writer writes rows.
func (f field) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// Commit writes the prepared row.
func (p *Writer) Commit() error {
	if p.w == nil {
		p.first = append(p.first, p.row.Clone())
		for _, v := range p.row {
			if v.Kind() == parquet.ByteArray {
				p.waiting += len(v.ByteArray())
			}
		}
		if len(p.first) < p.rowsOf(firstCells, firstRows) && p.waiting < firstBytes {
			return nil
		}
		return p.begin()
	}
	p.rows[0] = p.row
	_, err := p.w.WriteRows(p.rows[:])
	return err
}

// Close writes what is buffered and the footer.
func (p *Writer) Close() error {
	if p.w == nil {
		if err := p.begin(); err != nil {
			return err
		}
	}
	return p.w.Close()
}
