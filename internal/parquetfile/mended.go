package parquetfile

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is what old writers call format.RLEDictionary.
const plainDictionary = format.Encoding(2)

// mendedPages are the pages of a column, with repaired versions of those that the library decodes
// wrongly or not at all.
type mendedPages struct {
	*parquet.FilePages
	stored *storedPages
	kind   format.Type
}

// ReadPage implements parquet.Pages.
func (m *mendedPages) ReadPage() (parquet.Page, error) {
	for {
		page, undecoded, err := m.decode()
		if err != nil && !undecoded {
			return nil, err
		}
		p, noPage := m.stored.next()
		switch {
		case err != nil && (noPage != nil || p.afterDictionary && m.dictionary() == nil): // it is about the dictionary
			return nil, err
		case noPage != nil:
			parquet.Release(page)
			return nil, noPage
		case err != nil && p.count() == 0:
			continue // pyarrow writes such pages, without levels, before a row of a list that fills a page
		}
		return m.mend(page, p, err)
	}
}

// mend returns a replacement for a page that the library decoded, or failed to decode with that
// error.
func (m *mendedPages) mend(page parquet.Page, p dataPage, err error) (parquet.Page, error) {
	switch encoded := p.encoding(); {
	case m.kind == format.Int32 && encoded == format.DeltaBinaryPacked, m.kind == format.Boolean && encoded == format.RLE:
		parquet.Release(page)
		return m.stored.decode(p, nil)
	case err != nil && (encoded == format.RLEDictionary || encoded == plainDictionary):
		if dictionary := m.dictionary(); dictionary != nil {
			return m.stored.decode(p, dictionary)
		}
	}
	return page, err
}

// decode lets the library decode the next page. undecoded: it read a page with a correct checksum
// but could not decode it, that is, it failed or panicked.
func (m *mendedPages) decode() (page parquet.Page, undecoded bool, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			undecoded, err = true, fmt.Errorf("%w: %v", parquet.ErrCorrupted, fault)
		}
	}()
	page, err = m.FilePages.ReadPage()
	return page, err != nil && strings.HasPrefix(err.Error(), "decoding page "), err
}

// dictionary returns the column's dictionary; nil: it has none that can be decoded.
func (m *mendedPages) dictionary() parquet.Dictionary {
	dictionary, err := m.ReadDictionary()
	if err != nil {
		return nil
	}
	return dictionary
}
