package parquetfile

import (
	"encoding/binary"
	"fmt"
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

// checkDeltas fails if the header of differences announces far more of them than the n values of
// its page. Of texts with common prefixes, these are the lengths of the prefixes.
func checkDeltas(text []byte, n int) error {
	var values uint64
	for range 3 { // the size of blocks, and of how many parts they consist, come first
		var length int
		if values, length = binary.Uvarint(text); length <= 0 {
			return nil // the library says what is wrong
		}
		text = text[length:]
	}
	if values > uint64(max(n, roomyPage/8)) {
		return fmt.Errorf("%w: %d differences in a page of %d values", parquet.ErrCorrupted, values, n)
	}
	return nil
}
