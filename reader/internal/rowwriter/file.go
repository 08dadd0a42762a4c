package rowwriter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"aibox/reader/source"
)

// Encoder writes a row in two steps, which distinguishes a row that the format cannot hold from a
// failed write.
type Encoder interface {
	// Encode prepares a row in place of the last one. It fails on a cell that the
	// format cannot hold.
	Encode(cells [][]byte) error
	// Commit writes the prepared row. An error means that the write to the file failed.
	Commit() error
	// Close writes what is buffered and the end of the file. It does not close
	// the underlying writer.
	Close() error
}

// File writes rows into a file. Nothing is visible under the file's name before Close has
// returned nil. It is for one goroutine.
type File struct {
	rows       Encoder
	columns    int
	uri        string
	compressor io.WriteCloser
	file       source.Writer
	prepared   bool
}

// Create creates a file of rows with the given number of cells, encoded by newEncoder and
// compressed as its extension says (.gz, .deflate, .zst, .snappy).
func Create(ctx context.Context, sources *source.Sources, uri string, columns int, newEncoder func(io.Writer) (Encoder, error)) (*File, error) {
	file, err := sources.Create(ctx, uri)
	if err != nil {
		return nil, err
	}
	compressor, err := Compress(source.CompressionOf(uri), file)
	if err == nil {
		var rows Encoder
		if rows, err = newEncoder(compressor); err == nil {
			return &File{rows: rows, columns: columns, uri: uri, compressor: compressor, file: file}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", uri, err), file.Abort())
}

// Check returns an error that says why the format cannot hold the row, or nil if it
// can.
func (f *File) Check(cells [][]byte) error {
	if len(cells) != f.columns {
		return fmt.Errorf("a row has %d cells, but there are %d columns", len(cells), f.columns)
	}
	return f.rows.Encode(cells)
}

// Write writes one row: one cell of text for each column of the schema, in the schema's order, as
// a CSV file would hold it before quoting. An empty cell is a missing value. The column's
// Separator, if it has one, separates several values, and each value's weight follows the
// WeightSeparator. Write does not keep cells. It fails on a cell that the format cannot hold.
func (f *File) Write(cells [][]byte) error {
	err := f.Check(cells)
	if err == nil {
		err = f.rows.Commit()
	}
	if err != nil {
		return f.failed(err)
	}
	return nil
}

// CloseAll completes several files so that either all or none of them appear. They get their names
// when the bytes of all have been written. If one cannot get its name, those before it are deleted
// again, except for those that have replaced a file; the error names these.
func CloseAll(files []*File) error {
	for _, f := range files {
		if err := f.prepare(); err != nil {
			return f.failed(err)
		}
	}
	for i, f := range files {
		if err := f.Close(); err != nil {
			for _, before := range files[:i] {
				err = errors.Join(err, before.file.Withdraw())
			}
			return err
		}
	}
	return nil
}

// prepare does all that Close does, except that it does not give the file its name.
func (f *File) prepare() error {
	if f.prepared {
		return nil
	}
	f.prepared = true
	if err := f.rows.Close(); err != nil {
		return err
	}
	if err := f.compressor.Close(); err != nil {
		return err
	}
	return f.file.Prepare()
}

// Close completes the file; if that fails, the file is removed.
func (f *File) Close() error {
	err := f.prepare()
	if err == nil {
		err = f.file.Close()
	}
	if err != nil {
		return errors.Join(f.failed(err), f.file.Abort())
	}
	return nil
}

// failed names the file in an error, if the error does not do so itself.
func (f *File) failed(err error) error {
	var named *source.Error
	if errors.As(err, &named) && named.URI == f.uri {
		return err
	}
	return fmt.Errorf("write %s: %w", f.uri, err)
}

// Abort discards the file. After Close it does nothing.
func (f *File) Abort() error { return f.file.Abort() }

// Compress returns a writer of compressed data; closing it does not close w.
func Compress(c source.Compression, w io.Writer) (io.WriteCloser, error) {
	switch c {
	case source.NoCompression:
		return nopCloser{w}, nil
	case source.Gzip:
		return gzip.NewWriter(w), nil
	case source.Deflate:
		return zlib.NewWriter(w), nil
	case source.Zstd:
		// It uses one goroutine, so that the bytes are the same on every machine.
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	case source.Snappy:
		return snappy.NewBufferedWriter(w), nil
	default:
		return nil, fmt.Errorf("%v can be read but not written", c)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
