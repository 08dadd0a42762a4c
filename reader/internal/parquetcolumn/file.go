package parquetcolumn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"aibox/internal/parquetfile"
	"aibox/reader/source"
)

// File is an open file whose footer has been read.
type File struct {
	uri      string
	file     *parquet.File
	elements []*format.SchemaElement    // of the leaf columns
	columns  map[string]*parquet.Column // by name, without those in groups
	named    map[string]int             // how many columns have the name
	at       *fileSource
	once     sync.Once
	err      error
}

// fileSource is the file below the Parquet library. It remembers the first
// failed read, because the library's errors do not tell a failed read from
// damaged data.
type fileSource struct {
	source.ReaderAtCloser
	size   int64
	failed atomic.Pointer[error]
}

// ReadAt is io.ReaderAt's. Damaged data can lead to any offset.
func (s *fileSource) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset > s.size {
		return 0, fmt.Errorf("offset %d is outside of the file's %d bytes", offset, s.size)
	}
	n, err := s.ReaderAtCloser.ReadAt(p, offset)
	if err != nil && n < len(p) && (!errors.Is(err, io.EOF) || offset+int64(len(p)) <= s.size) {
		s.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// magic begins and ends a Parquet file; the 4 bytes before the second one are
// the length of the footer.
const magic = "PAR1"

// checkFrame checks that the file begins and ends as a Parquet file does. Without this
// check, the library would read at offsets that it takes from arbitrary bytes, and the
// failed reads would look like I/O errors. It returns where the footer begins.
func (s *fileSource) checkFrame() (footer int64, err error) {
	const shortest = 2*len(magic) + 4
	var head, tail [8]byte
	for _, part := range []struct {
		bytes  []byte
		offset int64
	}{{head[:min(4, s.size)], 0}, {tail[:min(8, s.size)], max(0, s.size-8)}} {
		if n, err := s.ReadAt(part.bytes, part.offset); n < len(part.bytes) {
			return 0, err
		}
	}
	if s.size < int64(shortest) {
		if strings.HasPrefix(magic, string(head[:min(4, s.size)])) {
			return 0, truncated("it has only %d bytes", s.size)
		}
		return 0, another("not a Parquet file: it has %d bytes", s.size)
	}
	footerBytes := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch begin, end := string(head[:4]), string(tail[4:]); {
	case begin == "PARE" || end == "PARE":
		return 0, another("an encrypted Parquet file cannot be read")
	case begin != magic && end != magic:
		return 0, another("not a Parquet file: it begins with %q, not with %q", begin, magic)
	case begin != magic:
		return 0, damaged("it begins with %q, not with %q", begin, magic)
	case end != magic:
		return 0, truncated("it ends with %q, not with %q", end, magic)
	case footerBytes > s.size-int64(shortest):
		return 0, damaged("its footer should have %d bytes, but the file has %d", footerBytes, s.size)
	}
	return s.size - 8 - footerBytes, nil
}

// signedFooter is the end of the library's error if 28 bytes follow the metadata: they are the
// signature of the unencrypted footer of a file with encrypted columns.
const signedFooter = "trailing bytes at the end of thrift input: 28"

// readBytes is how much of a column is read at a time: enough to keep HDFS round trips few, and
// little enough to keep the columns' buffers small.
const readBytes = 128 << 10

// Open opens a file and parses its footer. If the file can be read but is not a Parquet file
// or is damaged, the error wraps a *Fault.
func Open(ctx context.Context, s *source.Sources, f source.File) (*File, error) {
	at, err := s.OpenAt(ctx, f)
	if err != nil {
		return nil, err
	}
	open := &File{uri: f.URI, at: &fileSource{ReaderAtCloser: at, size: f.Size}}
	if err := open.Guard(func() error {
		footer, err := open.at.checkFrame()
		if err != nil {
			return err
		}
		open.file, err = parquet.OpenFile(parquetfile.WithFooter{ReaderAt: open.at, Footer: footer}, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
			parquet.ReadBufferSize(readBytes))
		switch {
		case err != nil && strings.HasSuffix(err.Error(), signedFooter):
			return another("an encrypted Parquet file cannot be read: its footer is signed, so columns are encrypted")
		case err != nil:
			return damaged("%w", err)
		}
		for _, e := range open.file.Metadata().Schema {
			if r := e.RepetitionType; r != nil && (*r < format.Required || *r > format.Repeated) {
				return damaged("column %q has an invalid repetition type, %v", e.Name, *r)
			}
		}
		open.elements = leafElements(open.file.Metadata())
		open.columns, open.named = map[string]*parquet.Column{}, map[string]int{}
		for _, c := range open.file.Root().Columns() {
			open.columns[c.Name()] = c
			open.named[c.Name()]++
		}
		return nil
	}); err != nil {
		if failed := open.Failure(); failed != nil {
			err = fmt.Errorf("read the footer of %s: %w", f.URI, failed)
		}
		return nil, errors.Join(err, open.Close())
	}
	return open, nil
}

// URI is the URI of the file.
func (f *File) URI() string { return f.uri }

// Close closes the file, once.
func (f *File) Close() error {
	f.once.Do(func() { f.err = f.at.Close() })
	return f.err
}

// Failure is the error of the first read that failed; nil if none did, in which case
// an error of the library is about the data.
func (f *File) Failure() error {
	if err := f.at.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Guard names the file in errors and turns a panic of the Parquet library, which
// a damaged file can cause, into an error.
func (f *File) Guard(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s: %w", f.uri, damaged("%v", fault))
		} else if err != nil {
			err = fmt.Errorf("%s: %w", f.uri, err)
		}
	}()
	return do()
}

// Groups are the numbers of rows of the file's row groups.
func (f *File) Groups() (rows []int64, err error) {
	all := int64(0)
	for _, g := range f.file.RowGroups() {
		if g.NumRows() < 0 {
			return nil, damaged("a row group with a negative number of rows")
		}
		rows = append(rows, g.NumRows())
		all += g.NumRows()
	}
	if want := f.file.NumRows(); all != want {
		return nil, damaged("its row groups have %d rows, but the file %d", all, want)
	}
	return rows, nil
}

// LeastValues is the smallest number of values of any column of a row group.
func (f *File) LeastValues(group int) (least int64) {
	least = math.MaxInt64
	for _, column := range f.file.Metadata().RowGroups[group].Columns {
		least = min(least, column.MetaData.NumValues)
	}
	return least
}
