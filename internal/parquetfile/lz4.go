package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/pierrec/lz4/v4"
)

// Parquet has two LZ4 codecs. A page of LZ4_RAW is one block, and the header of the page has its
// decompressed size. A page of the older LZ4 has Hadoop's form, as from parquet-mr, or is the same
// as LZ4_RAW if its writer did not know that form, such as fastparquet. In Hadoop's form, numbers
// are big-endian:
//
//	decompressed size (4 bytes) | size (4) | block | size (4) | block | …      until that size is reached
//	decompressed size (4 bytes) | size (4) | block | …                         until the page ends

// decodeLZ4 decompresses a page whose decompressed size is size.
func decodeLZ4(text []byte, size int) ([]byte, error) {
	page := make([]byte, size)
	if n, err := lz4.UncompressBlock(text, page); err != nil || n != size {
		return nil, fmt.Errorf("%w: LZ4 data that do not decompress to the %d bytes of the page", parquet.ErrCorrupted, size)
	}
	return page, nil
}

// decodeHadoopLZ4 decompresses a page of the given size, in Hadoop's form or as one block.
func decodeHadoopLZ4(text []byte, size int) ([]byte, error) {
	if page, ok := decodeBlocks(text, size); ok {
		return page, nil
	}
	return decodeLZ4(text, size)
}

// decodeBlocks decompresses a page of the given size in Hadoop's form.
func decodeBlocks(text []byte, size int) (page []byte, ok bool) {
	page = make([]byte, size)
	at, end := 0, 0 // in page: where the next block goes, and where those of the last size end
	for len(text) >= 4 {
		number := binary.BigEndian.Uint32(text)
		text = text[4:]
		if at == end {
			if uint64(number) > uint64(size-at) {
				return nil, false
			}
			end += int(number)
			continue
		}
		if uint64(number) > uint64(len(text)) {
			return nil, false
		}
		n, err := lz4.UncompressBlock(text[:number], page[at:end])
		if err != nil {
			return nil, false
		}
		at, text = at+n, text[number:]
	}
	return page, len(text) == 0 && at == size
}
