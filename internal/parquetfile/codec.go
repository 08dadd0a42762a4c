package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// CheckCodecs refuses columns that are compressed by LZ4: the library takes every
// fault in such data for a lack of room and doubles its buffer until the memory is
// used up. columns are those that will be read.
func CheckCodecs(file *parquet.File, columns []int) error {
	for _, g := range file.Metadata().RowGroups {
		for _, i := range columns {
			if i < len(g.Columns) && g.Columns[i].MetaData.Codec == format.Lz4Raw {
				return errors.New("LZ4 compression of Parquet is not supported: write it with zstd, snappy or gzip")
			}
		}
	}
	return nil
}
