package reader

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// rowGroupRows is how many rows a written row group has at most: a reader decodes row
// groups in parallel, and the writer holds one in memory.
const rowGroupRows = 1 << 16

// parquetWriter writes Parquet (zstd inside). Labels, weights and dense columns
// are optional doubles, sparse columns optional strings, or lists of strings
// where the column has separators, and ignored columns optional strings. A column
// with a Stored has the type that Stored names.
//
// The first rows wait until it is known which columns repeat their values. Those get
// dictionaries: a reader then decodes each value of a row group once, and the file is smaller.
type parquetWriter struct {
	out     io.Writer
	w       *parquet.GenericWriter[any] // nil: the first rows wait
	first   []parquet.Row
	waiting int // bytes of their texts
	columns []Column
	row     parquet.Row
	rows    [1]parquet.Row
}

// So many rows wait, or so many bytes of text if these come first.
const (
	firstRows  = 4096
	firstBytes = 4 << 20
)

func newParquetWriter(s *Schema, w io.Writer) *parquetWriter {
	return &parquetWriter{out: w, columns: s.Columns}
}

// begin writes the rows that wait.
func (p *parquetWriter) begin() error {
	group := parquetGroup{Group: parquet.Group{}}
	for i := range p.columns {
		field := parquetField{Node: p.columns[i].parquetNode(p.repeats(i)), name: p.columns[i].Name}
		group.Group[field.name] = field.Node
		group.fields = append(group.fields, field)
	}
	p.w = parquet.NewGenericWriter[any](p.out, parquet.NewSchema("aibox", group), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowGroupRows), parquet.CreatedBy("aibox", "", ""))
	_, err := p.w.WriteRows(p.first)
	p.first = nil
	return err
}

// repeats says whether a column mostly has values that it has had before. In the first rows it
// may have a new one in up to three of four: later there are fewer new ones.
func (p *parquetWriter) repeats(column int) bool {
	values, all := map[string]struct{}{}, 0
	for _, row := range p.first {
		for _, v := range row {
			if v.Column() == column && !v.IsNull() {
				values[string(v.Bytes())] = struct{}{}
				all++
			}
		}
	}
	return 4*len(values) <= 3*all
}

// parquetGroup is a group of columns that keeps their order; that of the library
// sorts them by name.
type parquetGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g parquetGroup) Fields() []parquet.Field { return g.fields }

// parquetField is a column of a parquetGroup.
type parquetField struct {
	parquet.Node
	name string
}

func (f parquetField) Name() string { return f.name }

// Value is called only where Go values are written; this writer writes rows.
func (f parquetField) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// isList says whether a sparse column can hold several or weighted values.
func (c *Column) isList() bool {
	return c.Role == RoleSparse && (c.Separator != "" || c.WeightSeparator != "")
}

func (c *Column) parquetNode(dictionary bool) parquet.Node {
	leaf, list := parquet.String(), c.isList()
	switch {
	case c.Stored.known():
		leaf, list = c.Stored.node(), c.Stored.list
	case c.Role == RoleLabel || c.Role == RoleWeight || c.Role == RoleDense:
		leaf = parquet.Leaf(parquet.DoubleType)
	}
	if dictionary && leaf.Type().Kind() != parquet.Boolean {
		leaf = parquet.Encoded(leaf, &parquet.RLEDictionary)
	}
	if list {
		return parquet.List(leaf)
	}
	return parquet.Optional(leaf)
}

func (p *parquetWriter) encode(cells [][]byte) error {
	if err := checkCells(cells, len(p.columns)); err != nil {
		return err
	}
	p.row = p.row[:0]
	for at := range p.columns {
		c, cell := &p.columns[at], cells[at]
		switch {
		case c.Stored.known():
			if err := p.stored(at, c, cell); err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
		case c.isList():
			p.list(at, c, cell)
		case c.Role == RoleSparse || c.Role == RoleIgnore:
			p.optional(at, len(cell) > 0, parquet.ByteArrayValue(cell))
		default:
			cell = number.Trim(cell)
			x, ok := number.Float64(cell)
			if !ok && len(cell) > 0 {
				return fmt.Errorf("column %s: %q is not a number", c.Name, rowtext.Excerpt(cell))
			}
			p.optional(at, len(cell) > 0, parquet.DoubleValue(x))
		}
	}
	return nil
}

func (p *parquetWriter) commit() error {
	if p.w == nil {
		p.first = append(p.first, p.row.Clone())
		for _, v := range p.row {
			if v.Kind() == parquet.ByteArray {
				p.waiting += len(v.ByteArray())
			}
		}
		if len(p.first) < firstRows && p.waiting < firstBytes {
			return nil
		}
		return p.begin()
	}
	p.rows[0] = p.row
	_, err := p.w.WriteRows(p.rows[:])
	return err
}

// optional adds a value of an optional column, or null.
func (p *parquetWriter) optional(at int, present bool, v parquet.Value) {
	if present {
		p.row = append(p.row, v.Level(0, 1, at))
	} else {
		p.row = append(p.row, parquet.NullValue().Level(0, 0, at))
	}
}

// list adds the values of a cell.
func (p *parquetWriter) list(at int, c *Column, cell []byte) {
	repetition := 0
	for len(cell) > 0 {
		var value []byte
		value, cell = rowtext.Cut(cell, c.Separator)
		if len(value) > 0 {
			p.row = append(p.row, parquet.ByteArrayValue(value).Level(repetition, 1, at))
			repetition = 1
		}
	}
	if repetition == 0 {
		p.row = append(p.row, parquet.NullValue().Level(0, 0, at))
	}
}

// stored adds the values of a cell whose column has a Stored.
func (p *parquetWriter) stored(at int, c *Column, cell []byte) error {
	repetition := 0
	for len(cell) > 0 {
		value, rest := cell, []byte(nil)
		if c.Stored.list {
			value, rest = rowtext.Cut(cell, storedListSeparator)
		}
		cell = rest
		if len(value) == 0 {
			continue
		}
		v, err := c.Stored.value(value)
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

func (p *parquetWriter) Close() error {
	if p.w == nil {
		if err := p.begin(); err != nil {
			return err
		}
	}
	return p.w.Close()
}
