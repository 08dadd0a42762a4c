package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Some writers, such as DuckDB, make the differences of DELTA_BINARY_PACKED with 64 bits also where a
// column has 32: the first value may be 2^31 and more, and differences may take 33 bits. The library
// refuses the former and makes wrong numbers of the latter. So such pages are decoded here, as if they
// were of 64 bits; the lower 32 of these are the value, whoever has written the page.

// int32Pages are the pages of a column of 32-bit integers.
type int32Pages struct {
	parquet.Pages
	stored *storedPages
}

func (d *int32Pages) ReadPage() (parquet.Page, error) {
	page, err := d.Pages.ReadPage()
	if err != nil && !strings.HasPrefix(err.Error(), undecoded) {
		return nil, err
	}
	p, noPage := d.stored.next()
	switch {
	case err != nil && (noPage != nil || p.afterDictionary): // it may be about the dictionary
		return nil, err
	case noPage == nil && p.encoding() == format.DeltaBinaryPacked:
		parquet.Release(page)
		return d.stored.decodeInt32(p)
	case err == nil && noPage != nil:
		parquet.Release(page)
		return nil, noPage
	}
	return page, err
}

// undecoded begins the library's errors about a page that it has read, with a sound checksum, but could not
// decode.
const undecoded = "decoding page "

// decodeInt32 decodes a page of differences.
func (s *storedPages) decodeInt32(p dataPage) (parquet.Page, error) {
	parts, err := s.parts(p)
	if err != nil {
		return nil, err
	}
	long, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, parts.values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	values := make([]int32, len(long))
	for i, x := range long {
		values[i] = int32(x)
	}
	page := &int32Page{column: s.column, count: p.count()}
	page.Page = s.column.Type().NewPage(s.column.Index(), len(values), encoding.Int32Values(values))
	if page.repetition, err = decodeLevels(parts.repetition, s.column.MaxRepetitionLevel(), page.count); err != nil {
		return nil, err
	}
	if page.definition, err = decodeLevels(parts.definition, s.column.MaxDefinitionLevel(), page.count); err != nil {
		return nil, err
	}
	return page, nil
}

// decodeLevels decodes n levels; nil where the column has none.
func decodeLevels(text []byte, most, n int) ([]byte, error) {
	if most == 0 {
		return nil, nil
	}
	levels, err := (&rle.Encoding{BitWidth: bits.Len(uint(most))}).DecodeLevels(nil, text)
	if err == nil && len(levels) < n {
		err = fmt.Errorf("%d levels where %d are announced", len(levels), n)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	return levels[:n], nil
}

// int32Page is a page that was decoded here, for those who read its values one after the other, or as
// arrays. Its number of rows is not known.
type int32Page struct {
	parquet.Page // of the values that are not null
	column       *parquet.Column
	count        int // of values, nulls included
	repetition   []byte
	definition   []byte
}

func (p *int32Page) NumValues() int64 { return int64(p.count) }

// NumNulls is how many values its levels say are null.
func (p *int32Page) NumNulls() int64 {
	if p.definition == nil {
		return 0
	}
	return int64(p.count - bytes.Count(p.definition, []byte{byte(p.column.MaxDefinitionLevel())}))
}

func (p *int32Page) RepetitionLevels() []byte { return p.repetition }
func (p *int32Page) DefinitionLevels() []byte { return p.definition }

func (p *int32Page) Values() parquet.ValueReader {
	return &int32Reader{page: p, there: p.Page.Values()}
}

// int32Reader reads the values of a page, nulls included.
type int32Reader struct {
	page  *int32Page
	there parquet.ValueReader // of the values that are not null
	at    int
}

func (r *int32Reader) ReadValues(values []parquet.Value) (n int, err error) {
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
