package reader

import (
	"encoding/binary"
	"math/bits"
)

// cut appends the cells of a line to cells until there are limit of them; what then is left
// of the line is cut off. Cells of click logs have some six bytes, so a search for each
// delimiter costs more than to look for all of them in eight bytes at a time.
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
