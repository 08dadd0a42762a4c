package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Differences begin with a header, which says how many there are. The library takes memory for so
// many, up to 2^31 of 8 bytes, before it looks for them. So pages of columns that have differences
// are decoded here, after a look at the header.

func isDelta(e format.Encoding) bool {
	return e == format.DeltaBinaryPacked || e == format.DeltaLengthByteArray || e == format.DeltaByteArray
}

// hasDeltas says whether the column has differences, as far as the footer says it.
func hasDeltas(column *format.ColumnMetaData) bool {
	return slices.ContainsFunc(column.Encoding, isDelta)
}

// checkDeltas fails if a header of differences announces far more of them than the n values of its
// page. Texts with common prefixes have two: the lengths of the prefixes, and those of what follows
// them, which is behind the differences of the first.
func checkDeltas(e format.Encoding, text []byte, n int) error {
	d := deltas(text)
	for {
		block, parts, values := d.uvarint(), d.uvarint(), d.uvarint()
		if values > uint64(max(n, roomyPage/8)) {
			return fmt.Errorf("%w: %d differences in a page of %d values", parquet.ErrCorrupted, values, n)
		}
		if e != format.DeltaByteArray || parts == 0 || block > math.MaxInt32 {
			return nil // where something is wrong with them, the library says what
		}
		d.skip(block, parts, values)
		e = format.DeltaLengthByteArray
	}
}

// deltas are what is left of a page of differences. Where it ends too soon, numbers are 0.
type deltas []byte

func (d *deltas) uvarint() uint64 {
	x, length := binary.Uvarint(*d)
	if length <= 0 {
		*d, x = nil, 0
	}
	*d = (*d)[max(length, 0):]
	return x
}

// skip goes past the differences after a header. They are in blocks, each of which has its smallest
// difference and the widths of its parts before these.
func (d *deltas) skip(block, parts, values uint64) {
	d.uvarint() // the first value; the others are differences
	for left := int64(values) - 1; left > 0 && len(*d) > 0; {
		d.uvarint()
		widths := (*d)[:min(parts, uint64(len(*d)))]
		*d = (*d)[len(widths):]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			*d = (*d)[min(block/parts*uint64(width)/8, uint64(len(*d))):]
			left -= int64(block / parts)
		}
	}
}
