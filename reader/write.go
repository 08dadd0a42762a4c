package reader

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/source"
)

// rowEncoder writes a row in two steps, so that a row which the format cannot
// hold is told from a failed write.
type rowEncoder interface {
	// Encode prepares a row in place of the last one. It fails on a cell that the
	// format cannot hold.
	Encode(cells [][]byte) error
	// Commit writes the prepared row. An error means that the write to the file failed.
	Commit() error
	// Close writes what is buffered and the end of the file. It does not close
	// the underlying writer.
	Close() error
}

func newRowEncoder(schema *Schema, w io.Writer) (rowEncoder, error) {
	switch {
	case schema.Format.delimited():
		return newDelimitedWriter(schema, w)
	case schema.Format.Indexed():
		return newTokenWriter(schema, w), nil
	default:
		return parquetcolumn.NewWriter(w, writtenColumns(schema.Columns)), nil
	}
}

// RowFile writes rows into a file. Nothing is visible under the file's name before Close has
// returned nil. It is for one goroutine.
type RowFile struct {
	rows       rowEncoder
	columns    int
	uri        string
	compressor io.WriteCloser
	file       source.Writer
	prepared   bool
}

// CreateRows creates a file of rows in the format, compressed as its name says (.gz, .zst,
// .snappy; Parquet compresses by itself). schema.Format is ignored, and columns of all roles
// are written. A Reader with the same schema reads the same examples from the file as from a
// CSV file with these cells. The only exception is features of LibSVM and LibFFM that are not
// numbers: see tokenWriter.
func CreateRows(ctx context.Context, sources *source.Sources, uri string, format Format, schema Schema) (*RowFile, error) {
	compression := source.CompressionOf(uri)
	if format == FormatParquet && compression != source.NoCompression {
		return nil, fmt.Errorf("reader: %s: Parquet files are compressed page by page, not as a whole; leave out the extension", uri)
	}
	file, err := sources.Create(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	compressor, err := compress(compression, file)
	schema.Format = format
	schema = WithIndices(schema)
	if faults := errors.Join(schema.check()...); err == nil && faults != nil {
		err = fmt.Errorf("reader: write %v: %w", format, faults)
	}
	if err == nil {
		s := schema.withDefaults()
		var rows rowEncoder
		if rows, err = newRowEncoder(&s, compressor); err == nil {
			return &RowFile{rows: rows, columns: len(s.Columns), uri: uri, compressor: compressor, file: file}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("reader: %s: %w", uri, err), file.Abort())
}

// Check returns an error that says why the format cannot hold the row, or nil if it
// can.
func (f *RowFile) Check(cells [][]byte) error {
	if len(cells) != f.columns {
		return fmt.Errorf("a row has %d cells, but there are %d columns", len(cells), f.columns)
	}
	return f.rows.Encode(cells)
}

// Write writes one row: one cell of text for each column of the schema, in the schema's order, as
// a CSV file would hold it before quoting. An empty cell is a missing value. The column's
// Separator, if it has one, separates several values, and each value's weight follows the
// WeightSeparator. Write does not keep cells. It fails on a cell that the format cannot hold.
func (f *RowFile) Write(cells [][]byte) error {
	err := f.Check(cells)
	if err == nil {
		err = f.rows.Commit()
	}
	if err != nil {
		return f.failed(err)
	}
	return nil
}

// CloseAll completes several files so that all of them appear or none does. They get
// their names when the bytes of all have been written; if one cannot get its name,
// those before it are deleted again. Those of them that have replaced a file stay, and
// the error names them.
func CloseAll(files []*RowFile) error {
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
func (f *RowFile) prepare() error {
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
func (f *RowFile) Close() error {
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
func (f *RowFile) failed(err error) error {
	var named *source.Error
	if errors.As(err, &named) && named.URI == f.uri {
		return err
	}
	return fmt.Errorf("write %s: %w", f.uri, err)
}

// Abort discards the file. After Close it does nothing.
func (f *RowFile) Abort() error { return f.file.Abort() }

// compress returns a writer of compressed data; closing it does not close w.
func compress(c source.Compression, w io.Writer) (io.WriteCloser, error) {
	switch c {
	case source.NoCompression:
		return nopCloser{w}, nil
	case source.Gzip:
		return gzip.NewWriter(w), nil
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
