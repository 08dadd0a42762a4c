package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// The library decodes the run-length encoding of booleans wrongly: a run begins at a whole
// byte, and a run of true sets one bit of eight. Writers use that encoding in data pages of
// version 2, so the values of such pages are decoded here.

// booleanPages are the pages of a column of booleans.
type booleanPages struct {
	parquet.Pages
	r     io.ReaderAt
	codec compress.Codec
	data  []dataPage // those that ReadPage has not returned, as far as they are known
}

// dataPage is the place of a data page.
type dataPage struct {
	header *format.PageHeader
	begin  int64 // of what follows the header
}

// note takes a page of the column, in the order of the file.
func (b *booleanPages) note(h *format.PageHeader, begin int64) {
	if h.Type == format.DataPage || h.Type == format.DataPageV2 {
		b.data = append(b.data, dataPage{h, begin})
	}
}

func (b *booleanPages) ReadPage() (parquet.Page, error) {
	page, err := b.Pages.ReadPage()
	if err != nil {
		return nil, err
	}
	if err := b.correct(page); err != nil {
		parquet.Release(page)
		return nil, err
	}
	return page, nil
}

// correct writes the page's values over those that the library has decoded.
func (b *booleanPages) correct(page parquet.Page) error {
	if len(b.data) == 0 {
		return fmt.Errorf("%w: a page without a header", parquet.ErrCorrupted)
	}
	p := b.data[0]
	b.data = b.data[1:]
	values := page.Data()
	if p.encoding() != format.RLE || values.Kind() != encoding.Boolean {
		return nil
	}
	runs, err := b.runs(p, len(page.RepetitionLevels()) > 0, len(page.DefinitionLevels()) > 0)
	if err != nil {
		return err
	}
	return decodeRuns(values.Boolean(), runs, int(page.NumValues()-page.NumNulls()))
}

func (p *dataPage) encoding() format.Encoding {
	if p.header.Type == format.DataPageV2 {
		return p.header.DataPageHeaderV2.Encoding
	}
	return p.header.DataPageHeader.Encoding
}

// runs reads the encoded values of a page, which may have levels before them.
func (b *booleanPages) runs(p dataPage, repeated, optional bool) ([]byte, error) {
	text := make([]byte, p.header.CompressedPageSize)
	if n, err := b.r.ReadAt(text, p.begin); n < len(text) {
		return nil, err
	}
	compressed := true
	if h := p.header.DataPageHeaderV2; p.header.Type == format.DataPageV2 {
		levels := int64(h.RepetitionLevelsByteLength) + int64(h.DefinitionLevelsByteLength)
		if levels < 0 || levels > int64(len(text)) {
			return nil, fmt.Errorf("%w: levels of %d bytes in a page of %d", parquet.ErrCorrupted, levels, len(text))
		}
		text = text[levels:]
		compressed = h.IsCompressed == nil || *h.IsCompressed
	}
	if compressed {
		var err error
		if text, err = b.codec.Decode(make([]byte, p.header.UncompressedPageSize), text); err != nil {
			return nil, err
		}
	}
	if h := p.header.DataPageHeader; p.header.Type == format.DataPage {
		for _, levels := range []struct {
			there    bool
			encoding format.Encoding
		}{{repeated, h.RepetitionLevelEncoding}, {optional, h.DefinitionLevelEncoding}} {
			if !levels.there {
				continue
			}
			if levels.encoding != format.RLE {
				return nil, fmt.Errorf("levels in the encoding %v are not supported", levels.encoding)
			}
			var err error
			if _, text, err = cutLength(text); err != nil {
				return nil, err
			}
		}
	}
	runs, _, err := cutLength(text)
	return runs, err
}

// cutLength cuts what begins with its own length off the text.
func cutLength(text []byte) (part, rest []byte, err error) {
	if len(text) < 4 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n := uint64(binary.LittleEndian.Uint32(text))
	if text = text[4:]; n > uint64(len(text)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return text[:n], text[n:], nil
}

// decodeRuns decodes n booleans, one bit each.
func decodeRuns(bits, runs []byte, n int) error {
	clear(bits)
	for at := 0; at < n; {
		head, size := binary.Uvarint(runs)
		if size <= 0 {
			return fmt.Errorf("%w: %d booleans where %d are announced", parquet.ErrCorrupted, at, n)
		}
		runs = runs[size:]
		packed, count := head&1 != 0, head>>1 // of bytes with eight values each, or of equal values
		if count == 0 {
			continue
		}
		bytes := uint64(1)
		if packed {
			bytes = count
		}
		if bytes > uint64(len(runs)) {
			return fmt.Errorf("%w: a run of booleans without its values", parquet.ErrCorrupted)
		}
		if packed {
			count *= 8
		}
		for i := range int(min(count, uint64(n-at))) {
			value := runs[0]
			if packed {
				value = runs[i/8] >> (i % 8)
			}
			bits[(at+i)/8] |= value & 1 << ((at + i) % 8)
		}
		at += int(min(count, uint64(n-at)))
		runs = runs[bytes:]
	}
	return nil
}
