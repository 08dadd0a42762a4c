package parquetfile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Delta encoded values start with a header that says how many there are. The library allocates
// memory for that many, up to 2^31 of 8 bytes, before it reads them. Pages of delta encoded columns
// are therefore decoded here, after a check of the header.

func isDelta(e format.Encoding) bool {
	return e == format.DeltaBinaryPacked || e == format.DeltaLengthByteArray || e == format.DeltaByteArray
}

// hasDeltas reports whether the footer says that the column has delta encoded pages.
func hasDeltas(column *format.ColumnMetaData) bool {
	return slices.ContainsFunc(column.Encoding, isDelta)
}

// checkDeltas fails if the header of delta encoded values announces far more than the n values of
// its page. For delta encoded strings, these are the lengths of the prefixes.
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
