package rowtext

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Cells cuts lines into cells.
type Cells struct {
	delimiter byte
	quoted    bool // a cell that begins with a quote ends with one
	cells     [][]byte
	unquoted  []byte // text of the line's quoted cells that hold quotes
}

// NewCells returns Cells whose slice has the capacity room, so that the caller may append cells.
func NewCells(delimiter byte, quoted bool, room int) *Cells {
	return &Cells{delimiter: delimiter, quoted: quoted, cells: make([][]byte, 0, room)}
}

// Split cuts a line into cells, at most limit; ok is false on bad quoting. The
// cells are valid until the next call.
func (c *Cells) Split(line []byte, limit int) (cells [][]byte, ok bool) {
	c.cells = c.cells[:0]
	if c.quoted && bytes.IndexByte(line, '"') >= 0 {
		return c.splitQuoted(line, limit)
	}
	c.cells = cut(c.cells, line, c.delimiter, limit)
	return c.cells, true
}

// splitQuoted is Split for lines with quotes (RFC 4180): a cell that begins with
// a quote ends with one, before a delimiter or the end of the line, and "" in it
// means a quote. Elsewhere in a cell a quote is an ordinary character.
func (c *Cells) splitQuoted(line []byte, limit int) (cells [][]byte, ok bool) {
	// Unquoting only shortens a cell, so this buffer never grows while cells point into it.
	if cap(c.unquoted) < len(line) {
		c.unquoted = make([]byte, 0, 2*len(line))
	}
	c.unquoted = c.unquoted[:0]
	for len(c.cells) < limit {
		if len(line) == 0 || line[0] != '"' {
			i := bytes.IndexByte(line, c.delimiter)
			if i < 0 {
				c.cells = append(c.cells, line)
				return c.cells, true
			}
			c.cells = append(c.cells, line[:i])
			line = line[i+1:]
			continue
		}
		start := len(c.unquoted)
		line = line[1:]
		for {
			i := bytes.IndexByte(line, '"')
			if i < 0 {
				return nil, false
			}
			c.unquoted = append(c.unquoted, line[:i]...)
			line = line[i+1:]
			if len(line) == 0 || line[0] != '"' {
				break
			}
			c.unquoted = append(c.unquoted, '"')
			line = line[1:]
		}
		c.cells = append(c.cells, c.unquoted[start:len(c.unquoted):len(c.unquoted)])
		if len(line) == 0 {
			return c.cells, true
		}
		if line[0] != c.delimiter {
			return nil, false
		}
		line = line[1:]
	}
	return c.cells, true
}

// cut appends the cells of a line to cells until there are limit of them, and drops the rest of the
// line. Cells of click logs have about six bytes, so searching for each delimiter separately would
// cost more than finding all delimiters in eight bytes at a time.
func cut(cells [][]byte, line []byte, delimiter byte, limit int) [][]byte {
	const ones, low7 = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	pattern := ones * uint64(delimiter)
	start, i := 0, 0
	for ; i+8 <= len(line); i += 8 {
		x := binary.LittleEndian.Uint64(line[i:]) ^ pattern // a byte that is 0 is a delimiter
		// The sum has bit 7 of each byte set unless the lower bits are 0; no byte carries
		// into the next one.
		for at := ^((x&low7 + low7) | x | low7); at != 0; at &= at - 1 {
			end := i + bits.TrailingZeros64(at)/8
			cells = append(cells, line[start:end])
			start = end + 1
			if len(cells) == limit {
				return cells
			}
		}
	}
	for ; i < len(line); i++ {
		if line[i] == delimiter {
			cells = append(cells, line[start:i])
			start = i + 1
			if len(cells) == limit {
				return cells
			}
		}
	}
	return append(cells, line[start:])
}
