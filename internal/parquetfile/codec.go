package parquetfile

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// CheckCodecs refuses columns that cannot be decoded, because the library's error would be mistaken
// for damage. columns are those that will be read.
func CheckCodecs(file *parquet.File, columns []int) error {
	for _, g := range file.Metadata().RowGroups {
		for _, i := range columns {
			if i >= len(g.Columns) {
				continue
			}
			switch column := &g.Columns[i].MetaData; column.Codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw, format.Lz4:
				if isSplit(column) && (column.Type == format.ByteArray || column.Type == format.Boolean || column.Type == format.Int96) {
					return fmt.Errorf("the Parquet encoding %v does not exist for %v: write the column in another encoding", format.ByteStreamSplit, column.Type)
				}
			default:
				return fmt.Errorf("%v compression of Parquet is not supported: write it with zstd, snappy or gzip", column.Codec)
			}
		}
	}
	return nil
}

// isSplit reports whether pages of the column may be byte stream split.
func isSplit(column *format.ColumnMetaData) bool {
	return slices.Contains(column.Encoding, format.ByteStreamSplit)
}
