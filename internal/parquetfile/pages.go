package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Pages returns the pages of column i of row group g, whose headers are checked
// before the library sees them. r is the file.
func Pages(file *parquet.File, r io.ReaderAt, g, i int) (parquet.Pages, error) {
	footer := file.Metadata().RowGroups[g]
	chunks := file.RowGroups()[g].ColumnChunks()
	if i >= len(chunks) || i >= len(footer.Columns) {
		return nil, fmt.Errorf("%w: a row group lacks column %d", parquet.ErrCorrupted, i)
	}
	meta := &footer.Columns[i].MetaData
	first := meta.DataPageOffset
	if meta.DictionaryPageOffset != 0 {
		first = meta.DictionaryPageOffset
	}
	chunk, ok := chunks[i].(*parquet.FileColumnChunk)
	if !ok {
		return chunks[i].Pages(), nil // an empty row group
	}
	column := chunk.Node().(*parquet.Column)
	stored := &storedPages{r: r, codec: meta.Codec, column: column}
	checker := &pageChecker{
		r: r, next: first, end: first + min(meta.TotalCompressedSize, file.Size()-first), values: meta.NumValues,
		largest: meta.TotalUncompressedSize,
	}
	if !libraryReads(meta, column) {
		return newOwnPages(io.NewSectionReader(checker, first, meta.TotalCompressedSize), stored), nil
	}
	checker.stored = stored
	return &mendedPages{FilePages: chunk.PagesFrom(checker), stored: stored, kind: meta.Type}, nil
}

const (
	// A page of up to this many bytes is read whatever else the file says. Writers make pages of
	// about 1 MiB.
	roomyPage = 64 << 20
	// The best compression ratio: zstd can hold 128 KiB in a block of 4 bytes.
	maxRatio = 1 << 15
	// The limit on a header, which has two values of the column, as statistics, and little else.
	maxHeader = 16 << 20
)

// pageChecker parses the headers of a column's pages as the column is read.
type pageChecker struct {
	r       io.ReaderAt
	next    int64  // where the next header begins
	header  []byte // the last one, with its statistics hidden
	begin   int64  // where it begins
	end     int64  // of the column, within the file
	values  int64  // of the column that the pages so far do not have
	largest int64  // bytes of a page that takes more than roomyPage

	stored *storedPages // gets the headers; nil: nobody needs them
}

// ReadAt is io.ReaderAt's. The library reads a column from its beginning to its end.
func (c *pageChecker) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.r.ReadAt(p, offset)
	c.show(p[:n], offset)
	if fault := c.check(p[:n], offset); fault != nil {
		return 0, fault
	}
	return n, err
}

// show replaces the last decoded header in the data that are read by one without statistics.
func (c *pageChecker) show(data []byte, offset int64) {
	if at := c.begin - offset; at >= 0 && at < int64(len(data)) {
		copy(data[at:], c.header)
	} else if at < 0 && -at < int64(len(c.header)) {
		copy(data, c.header[-at:])
	}
}

func (c *pageChecker) check(data []byte, offset int64) error {
	for {
		from := c.next - offset
		if from < 0 || from >= int64(len(data)) {
			return nil
		}
		text := data[from:]
		header, length, err := decodeHeader(text)
		for size := len(text) + someHeader; isCut(err); size *= 2 { // it ends with what will be read later
			if size > maxHeader {
				return fmt.Errorf("%w: the header of a page is longer than %d bytes", parquet.ErrCorrupted, maxHeader)
			}
			text = make([]byte, size)
			n, failed := c.r.ReadAt(text, c.next)
			if text = text[:n]; failed != nil && !errors.Is(failed, io.EOF) {
				return failed
			}
			if header, length, err = decodeHeader(text); n < size && isCut(err) {
				break
			}
		}
		if err != nil {
			c.next = math.MaxInt64 // the library finds the same
			return nil
		}
		begin := c.next + int64(length)
		if err := c.checkHeader(header, begin); err != nil {
			return err
		}
		if c.stored != nil {
			c.stored.note(header, begin)
		}
		c.header, c.begin = bytes.Clone(text[:length]), c.next
		c.show(data, offset)
		c.next = begin + int64(header.CompressedPageSize)
		if c.next >= c.end {
			c.next = math.MaxInt64
			return nil
		}
	}
}

// someHeader is more than most page headers take.
const someHeader = 1 << 10

func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// checkHeader compares a page that begins there with what the footer says.
func (c *pageChecker) checkHeader(h *format.PageHeader, begin int64) error {
	values, most, data := int64(0), c.values, true
	switch {
	case h.Type == format.DataPage && h.DataPageHeader != nil:
		values = int64(h.DataPageHeader.NumValues)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2 != nil:
		values = int64(h.DataPageHeaderV2.NumValues)
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader != nil:
		// A dictionary may have entries that the values of this row group, or of any, do not use,
		// like those of Arrow's categories. Each takes at least one byte.
		values, most, data = int64(h.DictionaryPageHeader.NumValues), int64(h.UncompressedPageSize), false
	default:
		return fmt.Errorf("%w: the header of a page of type %v is incomplete", parquet.ErrCorrupted, h.Type)
	}
	stored, raw := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	switch {
	case stored < 0 || stored > c.end-begin:
		return fmt.Errorf("%w: a page of %d bytes in a column that has %d left", parquet.ErrCorrupted, stored, c.end-begin)
	case raw < 0 || raw > max(roomyPage, min(c.largest, maxRatio*stored)):
		return fmt.Errorf("%w: a page of %d bytes that takes %d when it is decompressed", parquet.ErrCorrupted, stored, raw)
	case values < 0 || values > most:
		return fmt.Errorf("%w: a page of %d values, which is more than the maximum, %d", parquet.ErrCorrupted, values, most)
	}
	if data {
		c.values -= values
	}
	return nil
}

// decodeHeader decodes the header that data begin with, and says how long it is. It hides its
// statistics in data.
func decodeHeader(data []byte) (*format.PageHeader, int, error) {
	hideInHeader(data)
	r, h := bytes.NewReader(data), new(format.PageHeader)
	var protocol thrift.CompactProtocol
	if err := thrift.NewDecoder(protocol.NewReader(r)).Decode(h); err != nil {
		return nil, 0, err
	}
	return h, len(data) - r.Len(), nil
}
