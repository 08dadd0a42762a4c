package priority

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"aibox/sparsetable"
)

// A file of rows is a sequence of rows, each a key and the words of the row, all little-endian:
//
//	key   8 bytes
//	row   4 bytes for each of Layout.Words()
//
// Each key occurs once. Layout, number of rows and checksum are in the manifest of the priority
// save.

// RowBytes returns the size of a row in a file.
func RowBytes(l sparsetable.Layout) int { return 8 + l.Bytes() }

// AppendRow appends a row in the form of a file.
func AppendRow(dst []byte, key uint64, row []float32) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, key)
	for _, word := range row {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(word))
	}
	return dst
}

// Reader reads the rows of a file. It is a sparsetable.RowSource.
type Reader struct {
	r   io.Reader
	buf []byte
	row []float32
}

// NewReader returns a Reader of rows of a layout from r, which need not buffer.
func NewReader(r io.Reader, l sparsetable.Layout) *Reader {
	return &Reader{r: r, buf: make([]byte, RowBytes(l)), row: make([]float32, l.Words())}
}

// Next implements sparsetable.RowSource.
func (r *Reader) Next() (key uint64, row []float32, err error) {
	if _, err := io.ReadFull(r.r, r.buf); errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil, fmt.Errorf("priority: a file of rows ends within a row: %w", err)
	} else if err != nil {
		return 0, nil, err
	}
	for i := range r.row {
		r.row[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.buf[8+4*i:]))
	}
	return binary.LittleEndian.Uint64(r.buf), r.row, nil
}
