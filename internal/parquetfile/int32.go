package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/delta"
)

// Some writers, such as DuckDB, compute the differences of DELTA_BINARY_PACKED in 64 bits even for
// 32-bit columns: the first value may be 2^31 or more, and differences may take 33 bits. The
// library rejects the former and decodes the latter wrongly. Such pages are therefore decoded here
// as 64-bit values, of which the lower 32 bits are the value, whichever program wrote the page.

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
