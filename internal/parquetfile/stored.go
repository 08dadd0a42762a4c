package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// storedPages are the data pages of a column as stored in the file, for the pages that this package
// decodes.
type storedPages struct {
	r      io.ReaderAt
	codec  format.CompressionCodec
	column *parquet.Column
	data   []dataPage // those that next has not returned, as far as they are known

	dictionary bool // the page that was noted last is one
}

// dataPage is the place of a data page.
type dataPage struct {
	header *format.PageHeader
	begin  int64  // of what follows the header
	text   []byte // that; nil: it is yet to be read

	afterDictionary bool // a dictionary comes right before it
}

// note takes a page of the column, in the order of the file.
func (s *storedPages) note(h *format.PageHeader, begin int64) {
	dictionary := h.Type == format.DictionaryPage
	if !dictionary {
		s.data = append(s.data, dataPage{header: h, begin: begin, afterDictionary: s.dictionary})
	}
	s.dictionary = dictionary
}

// next is the page that the library has read last.
func (s *storedPages) next() (p dataPage, err error) {
	if len(s.data) == 0 {
		return p, fmt.Errorf("%w: a page without a header", parquet.ErrCorrupted)
	}
	p, s.data = s.data[0], s.data[1:]
	return p, nil
}

func (p *dataPage) encoding() format.Encoding {
	if p.header.Type == format.DataPageV2 {
		return p.header.DataPageHeaderV2.Encoding
	}
	return p.header.DataPageHeader.Encoding
}

// count is how many values the page has, nulls included.
func (p *dataPage) count() int {
	if p.header.Type == format.DataPageV2 {
		return int(p.header.DataPageHeaderV2.NumValues)
	}
	return int(p.header.DataPageHeader.NumValues)
}

// pageParts are the encoded parts of a page, decompressed. Levels that the column does not have
// are empty.
type pageParts struct {
	repetition, definition, values []byte
}

// parts reads the parts of a page.
func (s *storedPages) parts(p dataPage) (parts pageParts, err error) {
	text := p.text
	if text == nil {
		text = make([]byte, p.header.CompressedPageSize)
		if n, err := s.r.ReadAt(text, p.begin); n < len(text) {
			return parts, err
		}
	}
	repeated, optional := s.column.MaxRepetitionLevel() > 0, s.column.MaxDefinitionLevel() > 0
	if h := p.header.DataPageHeaderV2; p.header.Type == format.DataPageV2 {
		// Levels of version 2 come before what is compressed.
		r, d := int64(h.RepetitionLevelsByteLength), int64(h.DefinitionLevelsByteLength)
		if r < 0 || d < 0 || r+d > int64(len(text)) {
			return parts, fmt.Errorf("%w: levels of %d and %d bytes in a page of %d", parquet.ErrCorrupted, r, d, len(text))
		}
		// Levels of a column that has none are passed over, as the library does.
		if repeated {
			parts.repetition = text[:r]
		}
		if optional {
			parts.definition = text[r : r+d]
		}
		parts.values = text[r+d:]
		if h.IsCompressed == nil || *h.IsCompressed {
			parts.values, err = s.decompress(parts.values, int64(p.header.UncompressedPageSize)-r-d)
		}
		return parts, err
	}
	if parts.values, err = s.decompress(text, int64(p.header.UncompressedPageSize)); err != nil {
		return parts, err
	}
	h := p.header.DataPageHeader
	if repeated {
		parts.repetition, parts.values, err = cutLevels(parts.values, h.RepetitionLevelEncoding)
	}
	if optional && err == nil {
		parts.definition, parts.values, err = cutLevels(parts.values, h.DefinitionLevelEncoding)
	}
	return parts, err
}

// decompress decompresses text to size bytes.
func (s *storedPages) decompress(text []byte, size int64) ([]byte, error) {
	switch {
	case size < 0:
		return nil, fmt.Errorf("%w: a page that is shorter than its levels", parquet.ErrCorrupted)
	case s.codec == format.Lz4Raw:
		return decodeLZ4(text, int(size))
	case s.codec == format.Lz4:
		return decodeHadoopLZ4(text, int(size))
	}
	return parquet.LookupCompressionCodec(s.codec).Decode(make([]byte, size), text)
}

// cutLevels cuts levels off the rest of a page of version 1.
func cutLevels(text []byte, encoded format.Encoding) (levels, rest []byte, err error) {
	if encoded != format.RLE {
		return nil, nil, fmt.Errorf("levels in the encoding %v are not supported", encoded)
	}
	return cutLength(text)
}

// cutLength cuts a length-prefixed part off the text.
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
