package parquetfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// CheckCodecs refuses columns that the library cannot decode, since its error would be taken
// for damage. LZ4 is among them: the library takes every fault in such data for a lack of
// room and doubles its buffer until the memory is used up. columns are those that will be
// read.
func CheckCodecs(file *parquet.File, columns []int) error {
	for _, g := range file.Metadata().RowGroups {
		for _, i := range columns {
			if i >= len(g.Columns) {
				continue
			}
			switch column := &g.Columns[i].MetaData; column.Codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
				if slices.Contains(column.Encoding, format.ByteStreamSplit) && column.Type != format.Float && column.Type != format.Double {
					return fmt.Errorf("the Parquet encoding %v is supported for float and double, not for %v: write the column in another encoding", format.ByteStreamSplit, column.Type)
				}
			case format.Lz4Raw, format.Lz4:
				return errors.New("LZ4 compression of Parquet is not supported: write it with zstd, snappy or gzip")
			default:
				return fmt.Errorf("%v compression of Parquet is not supported: write it with zstd, snappy or gzip", column.Codec)
			}
		}
	}
	return nil
}
