package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
)

// Some writers, such as DuckDB, make the differences of DELTA_BINARY_PACKED with 64 bits also where a
// column has 32: the first value may be 2^31 and more, and differences may take 33 bits. The library
// refuses the former and makes wrong numbers of the latter. So such pages are decoded here, as if they
// were of 64 bits; the lower 32 of these are the value, whoever has written the page.

// decodeInt32 decodes a page of differences.
func (s *storedPages) decodeInt32(p dataPage) (parquet.Page, error) {
	page, text, err := s.undecoded(p)
	if err != nil {
		return nil, err
	}
	long, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	values := make([]int32, len(long))
	for i, x := range long {
		values[i] = int32(x)
	}
	return page.with(s.column.Type(), values), nil
}
