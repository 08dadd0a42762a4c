package rowwriter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// Tokens describes the tokens of a line.
type Tokens struct {
	Columns []Token
	Label   int  // the column whose cell is the first token; -1: none
	Query   int  // the column whose cell is the query number, qid:; -1: none
	FFM     bool // the lines are LibFFM, else LibSVM
}

// Token describes the tokens of a column in LibSVM and LibFFM.
type Token struct {
	Name string
	Kind TokenKind

	// Of a feature: its field, in LibFFM, or its first and last index, in LibSVM.
	Field           int
	First, Last     int64
	Separator       string
	WeightSeparator string
	Key             func(value []byte) uint64 // the hash of a sparse value
}

// TokenKind is what features a column has.
type TokenKind uint8

// The kinds.
const (
	None   TokenKind = iota
	Dense            // a number
	Sparse           // values, perhaps with weights
)

// tokenWriter writes LibSVM and LibFFM. A sparse value that is a number n in canonical decimal form
// is written as the index n (in LibSVM: as the n-th index of the column's range, if n fits). Any
// other value is hashed to an index of the column, because these formats cannot hold text. It is
// then read back as another feature, and two values may collide if the range is small.
type tokenWriter struct {
	w *bufio.Writer
	Tokens
	line []byte
}

// NewTokens returns an Encoder of lines of tokens.
func NewTokens(w io.Writer, how Tokens) Encoder {
	return &tokenWriter{w: bufio.NewWriterSize(w, writeBufferBytes), Tokens: how}
}

func (t *tokenWriter) Encode(cells [][]byte) error {
	t.line = t.line[:0]
	if t.Label >= 0 {
		label := number.Trim(cells[t.Label])
		if _, ok := number.Float64(label); !ok && len(label) > 0 {
			return fmt.Errorf("column %s: the label %s is not a number", t.Columns[t.Label].Name, rowtext.Shown(label))
		}
		t.line = append(t.line, label...)
	}
	if t.Query >= 0 && len(cells[t.Query]) > 0 {
		if bytes.ContainsAny(cells[t.Query], " \t\r\n#") {
			return fmt.Errorf("column %s: the cell %s contains spaces", t.Columns[t.Query].Name, rowtext.Shown(cells[t.Query]))
		}
		t.line = append(t.line, " qid:"...)
		t.line = append(t.line, cells[t.Query]...)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		var err error
		switch c.Kind {
		case Dense:
			err = t.dense(c, cells[i])
		case Sparse:
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
func (t *tokenWriter) dense(c *Token, cell []byte) error {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		return nil
	}
	if _, ok := number.Float64(cell); !ok {
		return fmt.Errorf("column %s: %s is not a number", c.Name, rowtext.Shown(cell))
	}
	t.token(c, 0, cell)
	return nil
}

// sparse writes the values of a sparse cell.
func (t *tokenWriter) sparse(c *Token, cell []byte) error {
	for len(cell) > 0 {
		var value []byte
		value, cell = rowtext.Cut(cell, c.Separator)
		value, weight, weighted := rowtext.CutWeight(value, c.WeightSeparator)
		if !weighted {
			weight = []byte("1")
		} else {
			weight = number.Trim(weight)
			if _, ok := number.Float32(weight); !ok {
				return fmt.Errorf("column %s: the weight %s is not a number", c.Name, rowtext.Shown(weight))
			}
		}
		if len(value) > 0 {
			t.token(c, t.feature(c, value), weight)
		}
	}
	return nil
}

// feature is the index of a sparse value, in LibSVM relative to the range.
func (t *tokenWriter) feature(c *Token, value []byte) uint64 {
	last := uint64(1<<63 - 1)
	if !t.FFM {
		last = uint64(c.Last - c.First)
	}
	n, ok := number.Int64(value)
	var canonical [20]byte
	if ok && n >= 0 && uint64(n) <= last && bytes.Equal(strconv.AppendInt(canonical[:0], n, 10), value) {
		return uint64(n)
	}
	return c.Key(value) % (last + 1)
}

func (t *tokenWriter) token(c *Token, feature uint64, value []byte) {
	t.line = append(t.line, ' ')
	if t.FFM {
		t.line = append(strconv.AppendInt(t.line, int64(c.Field), 10), ':')
	} else {
		feature += uint64(c.First)
	}
	t.line = append(strconv.AppendInt(t.line, int64(feature), 10), ':')
	t.line = append(t.line, value...)
}

func (t *tokenWriter) Close() error { return t.w.Flush() }
