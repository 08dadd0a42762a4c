package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/delta"
)

// Some writers, such as DuckDB, make the differences of DELTA_BINARY_PACKED with 64 bits also where a
// column has 32: the first value may be 2^31 and more, and differences may take 33 bits. The library
// refuses the former and makes wrong numbers of the latter. So such pages are decoded here, as if they
// were of 64 bits; the lower 32 of these are the value, whoever has written the page.

// decodeInt32 decodes differences.
func decodeInt32(text []byte) (values encoding.Values, err error) {
	long, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, text)
	if err != nil {
		return values, fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	short := make([]int32, len(long))
	for i, x := range long {
		short[i] = int32(x)
	}
	return encoding.Int32Values(short), nil
}
