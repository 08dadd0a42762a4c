package rowfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/parquetfile"
)

// leaf iterates over the values of one column. If the file lacks the column there are no
// values.
type leaf struct {
	index int // of the column in the file; -1: the file lacks it
	kind  parquet.Kind
	depth int // repetition levels: 1 for a list

	unsigned bool // integers have no sign

	values parquetfile.Values // of a row group
}

// find looks for the column called name, below which there must be only one leaf.
func (l *leaf) find(schema *parquet.Schema, name string) error {
	l.index = -1
	for _, path := range schema.Columns() {
		if path[0] != name {
			continue
		}
		if l.index >= 0 {
			return fmt.Errorf("column %q is a group of several columns", name)
		}
		c, ok := schema.Lookup(path...)
		if !ok {
			return fmt.Errorf("column %q cannot be found", name)
		}
		if t := c.Node.Type().LogicalType(); t != nil && t.Integer != nil {
			l.unsigned = !t.Integer.IsSigned
		}
		l.index, l.kind, l.depth = c.ColumnIndex, c.Node.Type().Kind(), c.MaxRepetitionLevel
	}
	return nil
}

// check returns an error if the type of the column is not that of column i of a row.
func (l *leaf) check(i int) error {
	if l.index < 0 {
		return nil
	}
	kind, what, depth := parquet.Float, "32-bit floats", 0
	switch i {
	case columnKey:
		kind, what = parquet.Int64, "64-bit integers"
	case columnValues, columnState:
		what, depth = "lists of 32-bit floats", 1
	case columnLastSeen, columnCountOf:
		kind, what = parquet.Int32, "32-bit integers"
	}
	if l.kind != kind || l.depth != depth {
		return fmt.Errorf("column %q does not hold %s", columnNames[i], what)
	}
	return nil
}

// begin moves to the first value of a row group of the file r.
func (l *leaf) begin(file *parquet.File, r io.ReaderAt, group int) error {
	if l.index < 0 {
		return nil
	}
	if err := l.values.Begin(file, r, group, l.index); err != nil {
		return fmt.Errorf("damaged Parquet file: %w", err)
	}
	return nil
}

// one returns the value of the next row in a column that is no list.
func (l *leaf) one() (parquet.Value, error) {
	if l.index < 0 {
		return parquet.Value{}, nil
	}
	v, err := l.values.Peek()
	if err != nil {
		return parquet.Value{}, err
	}
	if v.IsNull() {
		return parquet.Value{}, errors.New("it is empty")
	}
	l.values.Skip()
	return *v, nil
}

// counter returns the next row's number in a column of 32-bit integers. A negative number
// is an error.
func (l *leaf) counter() (uint32, error) {
	v, err := l.one()
	if err != nil || l.index < 0 {
		return 0, err
	}
	if n := v.Int32(); n < 0 && !l.unsigned {
		return 0, fmt.Errorf("%d is less than 0", n)
	}
	return v.Uint32(), nil
}

// list copies the list of the next row, which must be as long as dst, to dst.
func (l *leaf) list(dst []float32) error {
	if l.index < 0 {
		if len(dst) > 0 {
			return errors.New("the file has no such column")
		}
		return nil
	}
	n, err := l.each(func(i int, v *parquet.Value) error {
		if v.IsNull() {
			return errors.New("a value is empty")
		}
		if i < len(dst) {
			dst[i] = v.Float()
		}
		return nil
	})
	if err == nil && n != len(dst) {
		err = fmt.Errorf("a list has %d values, want %d", n, len(dst))
	}
	return err
}

// each calls fn for the values of the next row's list and returns their number.
func (l *leaf) each(fn func(i int, v *parquet.Value) error) (int, error) {
	for n := 0; ; n++ {
		v, err := l.values.Peek()
		if errors.Is(err, io.EOF) && n > 0 {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if n > 0 && v.RepetitionLevel() == 0 {
			return n, nil // the next row's
		}
		if n == 0 && v.IsNull() { // an empty list, unless more of it follows
			l.values.Skip()
			if v, err = l.values.Peek(); err == nil && v.RepetitionLevel() > 0 {
				err = errors.New("a value is empty")
			} else if errors.Is(err, io.EOF) {
				err = nil
			}
			return 0, err
		}
		if n == math.MaxUint16 {
			return n, fmt.Errorf("a list of more than %d values", n)
		}
		if err := fn(n, v); err != nil {
			return n, err
		}
		l.values.Skip()
	}
}

// firstLength is the length of the first list of a row group.
func (l *leaf) firstLength(file *parquet.File, r io.ReaderAt, group int) (int, error) {
	if l.index < 0 {
		return 0, nil
	}
	if err := l.begin(file, r, group); err != nil {
		return 0, err
	}
	n, err := l.each(func(int, *parquet.Value) error { return nil })
	return n, errors.Join(err, l.values.Close())
}
