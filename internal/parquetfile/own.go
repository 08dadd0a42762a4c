package parquetfile

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Some columns cannot be left to the library. It treats every fault in LZ4 data as a too small
// buffer, which it doubles until memory runs out. It does not know the older LZ4. It decompresses
// all row groups of a column with the codec of the first one. It decodes BYTE_STREAM_SPLIT only for
// floats. See also delta.go.

// ownPages are the pages of such a column, decoded here.
type ownPages struct {
	stored     *storedPages
	r          *bufio.Reader
	headers    *thrift.Decoder
	dictionary parquet.Dictionary // nil: none has been read
}

// libraryReads reports whether a row group's column can be left to the library.
func libraryReads(meta *format.ColumnMetaData, column *parquet.Column) bool {
	return meta.Codec != format.Lz4Raw && meta.Codec != format.Lz4 &&
		meta.Codec == column.Compression().CompressionCodec() &&
		!hasDeltas(meta) && (!isSplit(meta) || meta.Type == format.Float || meta.Type == format.Double)
}

// ownBuffer is how much is read of a column at a time, except within a larger page.
const ownBuffer = 128 << 10

func newOwnPages(column io.Reader, stored *storedPages) *ownPages {
	r, protocol := bufio.NewReaderSize(column, ownBuffer), new(thrift.CompactProtocol)
	return &ownPages{stored: stored, r: r, headers: thrift.NewDecoder(protocol.NewReader(r))}
}

// ReadPage is parquet.Pages's.
func (o *ownPages) ReadPage() (parquet.Page, error) {
	for {
		h := new(format.PageHeader)
		if err := o.headers.Decode(h); err != nil {
			return nil, err
		}
		text := make([]byte, h.CompressedPageSize)
		if _, err := io.ReadFull(o.r, text); err != nil {
			return nil, err
		}
		if sum := crc32.ChecksumIEEE(text); h.CRC != 0 && sum != uint32(h.CRC) {
			return nil, fmt.Errorf("%w: a page has the checksum %08x, but its header says %08x", parquet.ErrCorrupted, sum, uint32(h.CRC))
		}
		if h.Type == format.DictionaryPage {
			if err := o.readDictionary(h, text); err != nil {
				return nil, err
			}
		} else if p := (dataPage{header: h, text: text}); p.count() > 0 {
			return o.stored.decode(p, o.dictionary)
		}
	}
}

func (o *ownPages) readDictionary(h *format.PageHeader, text []byte) error {
	text, err := o.stored.decompress(text, int64(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	kind, n := o.stored.column.Type(), int(h.DictionaryPageHeader.NumValues)
	values, err := decodeBy(&parquet.Plain, kind, text, n)
	if err == nil {
		err = checkCount(values, int64(n))
	}
	if err == nil {
		o.dictionary = kind.NewDictionary(o.stored.column.Index(), n, values)
	}
	return err
}

// joinStreams returns the plain encoding of byte stream split values: all first bytes, then all
// second bytes, and so on.
func joinStreams(text []byte, of parquet.Type) ([]byte, error) {
	var width int
	switch of.Kind() {
	case parquet.Int32, parquet.Float:
		width = 4
	case parquet.Int64, parquet.Double:
		width = 8
	case parquet.FixedLenByteArray:
		width = of.Length()
	}
	if width == 0 || len(text)%width != 0 {
		return nil, fmt.Errorf("%w: %d bytes of byte streams, which is not a multiple of the value size, %d", parquet.ErrCorrupted, len(text), width)
	}
	plain, n := make([]byte, len(text)), len(text)/width
	for b := range width {
		for i, x := range text[b*n : (b+1)*n] {
			plain[i*width+b] = x
		}
	}
	return plain, nil
}

// SeekToRow is parquet.Pages's.
func (o *ownPages) SeekToRow(int64) error { return errors.ErrUnsupported }

// Close is parquet.Pages's.
func (o *ownPages) Close() error { return nil }
