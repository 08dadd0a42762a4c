package reader

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// indicesPerColumn is the length of the index range that WithIndices gives each
// column: it is more than the cardinality of any feature, and leaves room for 2,047
// columns.
const indicesPerColumn = 1 << 52

// WithIndices returns the schema with an index range for each dense and sparse
// column where the format is LibSVM and no column has one, and with a field
// number for each where it is LibFFM and no column has one. In LibSVM the k-th
// of these columns gets the indices from k*2^52 on. Other schemas are returned
// as they are. Slices of the argument are not written to.
func WithIndices(s Schema) Schema {
	isFeature := func(c Column) bool { return c.Role == RoleDense || c.Role == RoleSparse }
	hasIndices := func(c Column) bool {
		return (s.Format == FormatLibSVM && c.HasIndexRange) || (s.Format == FormatLibFFM && c.HasFieldNumber)
	}
	if !s.Format.Indexed() || slices.ContainsFunc(s.Columns, hasIndices) {
		return s
	}
	s.Columns = slices.Clone(s.Columns)
	k := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		if !isFeature(*c) {
			continue
		}
		if s.Format == FormatLibFFM {
			c.FieldNumber, c.HasFieldNumber = k, true
		} else {
			first := int64(k) * indicesPerColumn
			c.IndexRange, c.HasIndexRange = [2]int64{first, first + indicesPerColumn - 1}, true
			if c.Role == RoleDense {
				c.IndexRange[1] = first
			}
		}
		k++
	}
	return s
}

// tokenWriter writes LibSVM and LibFFM. A sparse value that is a number n in
// canonical decimal form is written as the index n (in LibSVM: as the n-th index of
// the column's range, if n fits). Any other value is hashed to an index of the column,
// since these formats cannot hold text: so it is read back as another feature, and two
// values may become one if the range is small.
type tokenWriter struct {
	w       *bufio.Writer
	columns []Column
	label   int // column, or -1
	query   int // column, or -1
	ffm     bool
	line    []byte
}

func newTokenWriter(s *Schema, w io.Writer) *tokenWriter {
	return &tokenWriter{
		w: bufio.NewWriterSize(w, writeBufferBytes), columns: s.Columns, label: s.column(s.labelColumn()),
		query: s.column(queryColumn), ffm: s.Format == FormatLibFFM,
	}
}

func (t *tokenWriter) Encode(cells [][]byte) error {
	t.line = t.line[:0]
	if t.label >= 0 {
		label := number.Trim(cells[t.label])
		if _, ok := number.Float64(label); !ok && len(label) > 0 {
			return fmt.Errorf("column %s: the label %q is not a number", t.columns[t.label].Name, rowtext.Excerpt(label))
		}
		t.line = append(t.line, label...)
	}
	if t.query >= 0 && len(cells[t.query]) > 0 {
		if bytes.ContainsAny(cells[t.query], " \t\r\n#") {
			return fmt.Errorf("column %s: the cell %q contains spaces", queryColumn, rowtext.Excerpt(cells[t.query]))
		}
		t.line = append(t.line, " qid:"...)
		t.line = append(t.line, cells[t.query]...)
	}
	for i := range t.columns {
		c := &t.columns[i]
		var err error
		switch {
		case !c.HasIndexRange && !c.HasFieldNumber:
		case c.Role == RoleDense:
			err = t.dense(c, cells[i])
		case c.Role == RoleSparse:
			err = t.sparse(c, cells[i])
		}
		if err != nil {
			return err
		}
	}
	if len(t.line) == 0 {
		return errors.New("a row without a label and features would be an empty line, which readers skip")
	}
	t.line = append(t.line, '\n')
	return nil
}

func (t *tokenWriter) Commit() error {
	_, err := t.w.Write(t.line)
	return err
}

// dense writes a dense cell; a missing one has no token.
func (t *tokenWriter) dense(c *Column, cell []byte) error {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		return nil
	}
	if _, ok := number.Float64(cell); !ok {
		return fmt.Errorf("column %s: %q is not a number", c.Name, rowtext.Excerpt(cell))
	}
	t.token(c, 0, cell)
	return nil
}

// sparse writes the values of a sparse cell.
func (t *tokenWriter) sparse(c *Column, cell []byte) error {
	for len(cell) > 0 {
		var value []byte
		value, cell = rowtext.Cut(cell, c.Separator)
		weight := []byte("1")
		if i := rowtext.LastIndex(value, c.WeightSeparator); i >= 0 {
			value, weight = value[:i], number.Trim(value[i+len(c.WeightSeparator):])
			if _, ok := number.Float32(weight); !ok {
				return fmt.Errorf("column %s: the weight %q is not a number", c.Name, rowtext.Excerpt(weight))
			}
		}
		if len(value) > 0 {
			t.token(c, t.feature(c, value), weight)
		}
	}
	return nil
}

// feature is the index of a sparse value, in LibSVM relative to the range.
func (t *tokenWriter) feature(c *Column, value []byte) uint64 {
	last := uint64(1<<63 - 1)
	if !t.ffm {
		last = uint64(c.IndexRange[1] - c.IndexRange[0])
	}
	n, ok := number.Int64(value)
	var canonical [20]byte
	if ok && n >= 0 && uint64(n) <= last && bytes.Equal(strconv.AppendInt(canonical[:0], n, 10), value) {
		return uint64(n)
	}
	return Key(c.space(), value) % (last + 1)
}

func (t *tokenWriter) token(c *Column, feature uint64, value []byte) {
	t.line = append(t.line, ' ')
	if t.ffm {
		t.line = append(strconv.AppendInt(t.line, int64(c.FieldNumber), 10), ':')
	} else {
		feature += uint64(c.IndexRange[0])
	}
	t.line = append(strconv.AppendInt(t.line, int64(feature), 10), ':')
	t.line = append(t.line, value...)
}

func (t *tokenWriter) Close() error { return t.w.Flush() }
