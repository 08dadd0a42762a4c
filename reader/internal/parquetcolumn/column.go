package parquetcolumn

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/parquetfile"
)

// Column walks over the values of one column of a row group, row by row.
type Column struct {
	Leaf   *Leaf
	Times  bool // timestamps and dates become readable text, not integers
	Digits bool // booleans become the text 1 and 0, since the column is used as a number

	values parquetfile.Values
	bulk   *bulk  // of a simple column, which reads it; else nil
	of     int    // how many values of the present row were taken, nulls included
	seen   int    // how many of them are not null
	cell   []byte // the text of a value that is not stored as text

	value parquet.Value // that Next has returned, if it is in no page
}

// Column returns the column of a row group.
func (f *File) Column(group int, leaf *Leaf) (*Column, error) {
	c := &Column{Leaf: leaf}
	if leaf.null || leaf.given {
		return c, nil
	}
	if err := c.values.Begin(f.file, f.at, group, leaf.index); err != nil {
		return nil, fmt.Errorf("column %q: %w", leaf.Name, err)
	}
	return c, nil
}

// Seen is how many values Next has returned of the row.
func (c *Column) Seen() int { return c.seen }

// Valid says whether a value of a column of text is text.
func (c *Column) Valid(v *parquet.Value) bool { return !c.Leaf.text || utf8.Valid(v.ByteArray()) }

// Next returns the next non-null value of the current row. After the last one, and on a fault of
// the file, it returns nil; the call after that starts the next row. The value is valid until the
// next call.
func (c *Column) Next() (*parquet.Value, error) {
	if c.of == 0 {
		c.seen = 0
	}
	if c.Leaf.null || c.Leaf.given || c.bulk != nil {
		return c.only()
	}
	for c.of == 0 || c.Leaf.List {
		v, err := c.values.Peek()
		if err != nil {
			err = c.fault(err)
			c.of = 0
			return nil, err
		}
		if c.of > 0 && v.RepetitionLevel() == 0 {
			break // it belongs to the next row
		}
		c.values.Skip()
		c.of++
		if !v.IsNull() {
			c.seen++
			return v, nil
		}
	}
	c.of = 0
	return nil, nil
}

// only is Next for a column with at most one value per row that does not come from a page: the same
// value in all rows, or one from bulk decoding.
func (c *Column) only() (*parquet.Value, error) {
	if c.of > 0 || c.Leaf.null {
		c.of = 0
		return nil, nil
	}
	c.value = c.Leaf.value
	if c.bulk != nil {
		var err error
		if c.value, err = c.bulk.take(); err != nil {
			return nil, c.fault(err)
		}
		if c.value.IsNull() {
			return nil, nil
		}
	}
	c.of, c.seen = 1, 1
	return &c.value, nil
}

// fault returns the error if err ended the column; after a row's first value, that is no fault.
func (c *Column) fault(err error) error {
	if errors.Is(err, io.EOF) {
		if c.of > 0 {
			return nil
		}
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("column %q: %w", c.Leaf.Name, err)
}

// Close gives up the column.
func (c *Column) Close() error {
	if c.bulk != nil {
		c.bulk.release()
	}
	return c.values.Close()
}
