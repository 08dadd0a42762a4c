package parquetfile

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Values iterates over the values of one column of a row group, page after page. Begin must be
// called first.
type Values struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buffer []parquet.Value
	lo, hi int // in buffer: the values that were taken from the page and not yet skipped
}

// bufferValues is how many values are taken from a page at a time.
const bufferValues = 256

// Begin moves to the first value of column i of row group g of the file, which r reads.
func (v *Values) Begin(file *parquet.File, r io.ReaderAt, g, i int) error {
	if err := v.Close(); err != nil {
		return err
	}
	pages, err := Pages(file, r, g, i)
	if err != nil {
		return err
	}
	v.pages = pages
	return nil
}

// Pages are the pages that are left, for a caller that reads them itself instead of
// taking values; nil if Begin was not called.
func (v *Values) Pages() parquet.Pages { return v.pages }

// Peek returns the next value, or io.EOF after the last one. The value is valid until
// the next call of Peek.
func (v *Values) Peek() (*parquet.Value, error) {
	if v.lo < v.hi {
		return &v.buffer[v.lo], nil
	}
	return v.fill()
}

// Skip moves past the value that Peek has returned.
func (v *Values) Skip() { v.lo++ }

// fill takes further values, and returns the first of them.
func (v *Values) fill() (*parquet.Value, error) {
	for {
		if v.values == nil {
			page, err := NextPage(v.pages)
			if err != nil {
				return nil, err
			}
			v.page, v.values = page, page.Values()
			if v.buffer == nil {
				v.buffer = make([]parquet.Value, bufferValues)
			}
		}
		n, err := v.values.ReadValues(v.buffer)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case n > 0:
			v.lo, v.hi = 0, n
			return &v.buffer[0], nil
		}
		v.release()
	}
}

func (v *Values) release() {
	if v.page != nil {
		parquet.Release(v.page)
	}
	v.page, v.values, v.lo, v.hi = nil, nil, 0, 0
}

// Close gives up the row group.
func (v *Values) Close() error {
	if v.pages == nil {
		return nil
	}
	v.release()
	err := v.pages.Close()
	v.pages = nil
	return err
}
