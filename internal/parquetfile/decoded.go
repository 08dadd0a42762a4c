package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// decode decodes a page without the library's reader. Its dictionary may be nil.
func (s *storedPages) decode(p dataPage, dictionary parquet.Dictionary) (parquet.Page, error) {
	page, text, err := s.undecoded(p)
	if err != nil {
		return nil, err
	}
	of, n := s.column.Type(), page.count-int(page.NumNulls())
	var values encoding.Values
	if isDelta(p.encoding()) {
		if err := checkDeltas(p.encoding(), text, n); err != nil {
			return nil, err
		}
	}
	switch encoded := p.encoding(); {
	case encoded == format.RLEDictionary || encoded == plainDictionary:
		if dictionary == nil {
			return nil, fmt.Errorf("%w: dictionary indices without a dictionary", parquet.ErrCorrupted)
		}
		var places []int32
		places, err = decodePlaces(text, n)
		of, values = dictionary.Type(), encoding.Int32Values(places)
	case encoded == format.DeltaBinaryPacked && of.Kind() == parquet.Int32:
		values, err = decodeInt32(text)
	case encoded == format.RLE && of.Kind() == parquet.Boolean:
		values, err = decodeBooleans(text, n)
	case encoded == format.ByteStreamSplit:
		if text, err = joinStreams(text, of); err == nil {
			values, err = decodeBy(&parquet.Plain, of, text, n)
		}
	default:
		values, err = decodeBy(parquet.LookupEncoding(encoded), of, text, n)
	}
	if err == nil {
		err = checkCount(values, int64(n)) // the library takes what is in the slice behind its end
	}
	if err != nil {
		return nil, err
	}
	page.Page = of.NewPage(s.column.Index(), n, values)
	return page, nil
}

// decodeBy lets the library decode n values. The library's size estimate is not used, because for
// damaged prefixes of texts it adds up arbitrary lengths.
func decodeBy(e encoding.Encoding, of parquet.Type, text []byte, n int) (encoding.Values, error) {
	var room []byte
	if e.CanDecodeInPlace() {
		room = text
	}
	return of.Decode(of.NewValues(room, make([]uint32, 0, n+1)), text, e)
}

// undecoded returns a page with its levels, and the encoded bytes of its values, which remain to be
// decoded.
func (s *storedPages) undecoded(p dataPage) (page *decodedPage, text []byte, err error) {
	parts, err := s.parts(p)
	if err != nil {
		return nil, nil, err
	}
	page = &decodedPage{column: s.column, count: p.count()}
	if page.repetition, err = decodeLevels(parts.repetition, s.column.MaxRepetitionLevel(), page.count); err != nil {
		return nil, nil, err
	}
	if page.definition, err = decodeLevels(parts.definition, s.column.MaxDefinitionLevel(), page.count); err != nil {
		return nil, nil, err
	}
	return page, parts.values, nil
}

// decodeLevels decodes n levels; nil where the column has none.
func decodeLevels(text []byte, most, n int) ([]byte, error) {
	if most == 0 {
		return nil, nil
	}
	levels, err := (&rle.Encoding{BitWidth: bits.Len(uint(most))}).DecodeLevels(nil, text)
	if err == nil && len(levels) < n {
		err = fmt.Errorf("%d levels instead of %d", len(levels), n)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	return levels[:n], nil
}

// decodedPage is a page that this package decoded. Its values can be read one after the other or as
// arrays. Its number of rows is not known.
type decodedPage struct {
	parquet.Page // of the values that are not null
	column       *parquet.Column
	count        int // of values, nulls included
	repetition   []byte
	definition   []byte
}

func (p *decodedPage) NumValues() int64 { return int64(p.count) }

// NumNulls is how many values its levels say are null.
func (p *decodedPage) NumNulls() int64 {
	if p.definition == nil {
		return 0
	}
	return int64(p.count - bytes.Count(p.definition, []byte{byte(p.column.MaxDefinitionLevel())}))
}

func (p *decodedPage) RepetitionLevels() []byte { return p.repetition }
func (p *decodedPage) DefinitionLevels() []byte { return p.definition }

func (p *decodedPage) Values() parquet.ValueReader {
	return &decodedReader{page: p, there: p.Page.Values()}
}

// decodedReader reads the values of a page, nulls included.
type decodedReader struct {
	page  *decodedPage
	there parquet.ValueReader // of the values that are not null
	at    int
}

func (r *decodedReader) ReadValues(values []parquet.Value) (n int, err error) {
	p, column := r.page, r.page.column
	for ; n < len(values) && r.at < p.count; n++ {
		repetition, definition := 0, column.MaxDefinitionLevel()
		if p.repetition != nil {
			repetition = int(p.repetition[r.at])
		}
		if p.definition != nil {
			definition = int(p.definition[r.at])
		}
		value := values[n : n+1]
		value[0] = parquet.NullValue()
		if definition == column.MaxDefinitionLevel() {
			if k, err := r.there.ReadValues(value); k == 0 {
				return n, err
			}
		}
		value[0] = value[0].Level(repetition, definition, column.Index())
		r.at++
	}
	if r.at == p.count {
		err = io.EOF
	}
	return n, err
}
