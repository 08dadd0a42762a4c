package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// NextPage returns the next page of a column, checked by CheckPage. The caller releases it.
func NextPage(pages parquet.Pages) (parquet.Page, error) {
	page, err := pages.ReadPage()
	if err != nil {
		return nil, err
	}
	if err := CheckPage(page); err != nil {
		parquet.Release(page)
		return nil, err
	}
	return page, nil
}

// CheckPage checks that a page holds as many values as its levels announce. The
// library does not check that and would read a damaged page forever.
func CheckPage(page parquet.Page) error {
	return checkCount(page.Data(), page.NumValues()-page.NumNulls())
}

// checkCount checks that there are at least want values.
func checkCount(values encoding.Values, want int64) error {
	bytes, offsets := values.Data()
	var have int64
	switch values.Kind() {
	case encoding.Undefined: // only nulls
	case encoding.Boolean:
		have = 8 * int64(len(bytes))
	case encoding.Int32, encoding.Float:
		have = int64(len(bytes)) / 4
	case encoding.Int64, encoding.Double:
		have = int64(len(bytes)) / 8
	case encoding.ByteArray:
		have = int64(len(offsets)) - 1
	case encoding.FixedLenByteArray:
		if _, size := values.FixedLenByteArray(); size > 0 {
			have = int64(len(bytes) / size)
		}
	default:
		return fmt.Errorf("a page holds values of an unknown kind, %v", values.Kind())
	}
	if have < want {
		return fmt.Errorf("%w: a page has %d values, but its header says %d", parquet.ErrCorrupted, have, want)
	}
	return nil
}
