package reader

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/source"
)

// openParquetFile is an open file and the units that still need it.
type openParquetFile struct {
	uri   string
	file  *parquet.File
	at    *parquetSource
	units atomic.Int64
	once  sync.Once
	err   error
}

// parquetSource is the file below the Parquet library. It remembers the first
// failed read, because the library's errors do not tell a failed read from
// damaged data.
type parquetSource struct {
	source.ReaderAtCloser
	size   int64
	failed atomic.Pointer[error]
}

// ReadAt is io.ReaderAt's. Damaged data can lead to any offset.
func (s *parquetSource) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset > s.size {
		return 0, fmt.Errorf("offset %d is outside of the file's %d bytes", offset, s.size)
	}
	n, err := s.ReaderAtCloser.ReadAt(p, offset)
	if err != nil && n < len(p) && (!errors.Is(err, io.EOF) || offset+int64(len(p)) <= s.size) {
		s.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// failure is the error of the first read that failed; nil if none did, in which case
// an error of the library is about the data.
func (s *parquetSource) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// parquetMagic begins and ends a Parquet file; the 4 bytes before the second one are
// the length of the footer.
const parquetMagic = "PAR1"

// checkFrame checks that the file begins and ends as a Parquet file does. Without this
// check, the library would read at offsets that it takes from arbitrary bytes, and the
// failed reads would look like I/O errors.
func (s *parquetSource) checkFrame() error {
	const shortest = 2*len(parquetMagic) + 4
	var head, tail [8]byte
	for _, part := range []struct {
		bytes  []byte
		offset int64
	}{{head[:min(4, s.size)], 0}, {tail[:min(8, s.size)], max(0, s.size-8)}} {
		if n, err := s.ReadAt(part.bytes, part.offset); n < len(part.bytes) {
			return err
		}
	}
	if s.size < int64(shortest) {
		if strings.HasPrefix(parquetMagic, string(head[:min(4, s.size)])) {
			return &damagedParquet{fmt.Errorf("truncated Parquet file: it has only %d bytes", s.size), true}
		}
		return fmt.Errorf("not a Parquet file: it has %d bytes", s.size)
	}
	footerBytes := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch magic, end := string(head[:4]), string(tail[4:]); {
	case magic == "PARE" || end == "PARE":
		return errors.New("an encrypted Parquet file cannot be read")
	case magic != parquetMagic && end != parquetMagic:
		return fmt.Errorf("not a Parquet file: it begins with %q, not with %q", magic, parquetMagic)
	case magic != parquetMagic:
		return &damagedParquet{fmt.Errorf("damaged Parquet file: it begins with %q, not with %q", magic, parquetMagic), false}
	case end != parquetMagic:
		return &damagedParquet{fmt.Errorf("truncated Parquet file: it ends with %q, not with %q", end, parquetMagic), true}
	case footerBytes > s.size-int64(shortest):
		return &damagedParquet{fmt.Errorf("damaged Parquet file: a footer of %d bytes in a file of %d", footerBytes, s.size), false}
	}
	return nil
}

// damagedParquet says that nothing can be read of a Parquet file, because its footer is
// damaged or missing. All of the file is lost then.
type damagedParquet struct {
	err error
	cut bool // the end of the file is missing
}

func (e *damagedParquet) Error() string { return e.err.Error() }
func (e *damagedParquet) Unwrap() error { return e.err }

// signedFooter is how the library's error ends where 28 bytes follow the metadata: the signature of a footer that is not
// encrypted, of a file with columns that are.
const signedFooter = "trailing bytes at the end of thrift input: 28"

// openParquet opens a file and parses its footer. If the file can be read but is not
// a Parquet file, the error is an *InputError; if it is a damaged one, that wraps a
// *damagedParquet.
func openParquet(ctx context.Context, s *source.Sources, f source.File) (*openParquetFile, error) {
	at, err := s.OpenAt(ctx, f)
	if err != nil {
		return nil, err
	}
	open := &openParquetFile{uri: f.URI, at: &parquetSource{ReaderAtCloser: at, size: f.Size}}
	if err := guard(f.URI, func() (err error) {
		if err := open.at.checkFrame(); err != nil {
			return err
		}
		open.file, err = parquet.OpenFile(open.at, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
			parquet.ReadBufferSize(parquetReadBytes))
		switch {
		case err != nil && strings.HasSuffix(err.Error(), signedFooter):
			return errors.New("an encrypted Parquet file cannot be read: its footer is signed, so columns are encrypted")
		case err != nil:
			return &damagedParquet{fmt.Errorf("damaged Parquet file: %w", err), false}
		}
		return nil
	}); err != nil {
		if failed := open.at.failure(); failed != nil {
			err = fmt.Errorf("read the footer of %s: %w", f.URI, failed)
		} else if ctx.Err() == nil {
			err = &InputError{err}
		}
		return nil, errors.Join(err, open.close())
	}
	return open, nil
}

// close closes the file, once.
func (o *openParquetFile) close() error {
	o.once.Do(func() { o.err = o.at.Close() })
	return o.err
}

// guard names the file in errors and turns a panic of the Parquet library, which
// a damaged file can cause, into an error.
func guard(uri string, do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s: %w", uri, &damagedParquet{fmt.Errorf("damaged Parquet file: %v", fault), false})
		} else if err != nil {
			err = fmt.Errorf("%s: %w", uri, err)
		}
	}()
	return do()
}
