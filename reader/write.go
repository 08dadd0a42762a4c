package reader

import (
	"context"
	"fmt"
	"io"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/internal/rowwriter"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// RowFile writes rows into a file. Nothing is visible under the file's name before Close has
// returned nil. It is for one goroutine.
type RowFile = rowwriter.File

// CloseAll completes several files so that all of them appear or none does, as far as that can be.
func CloseAll(files []*RowFile) error { return rowwriter.CloseAll(files) }

// CreateRows creates a file of rows in the format, compressed as its name says (.gz, .deflate, .zst,
// .snappy; Parquet compresses by itself). schema.Format is ignored, and columns of all roles
// are written. A Reader with the same schema reads the same examples from the file as from a
// CSV file with these cells. The only exception is features of LibSVM and LibFFM that are not
// numbers: see package rowwriter.
func CreateRows(ctx context.Context, sources *source.Sources, uri string, format Format, schema Schema) (*RowFile, error) {
	compression := source.CompressionOf(uri)
	switch {
	case format == FormatParquet && compression != source.NoCompression:
		return nil, faults.OptionsErrorf("reader: %s: Parquet files are compressed page by page, not as a whole; leave out the extension", uri)
	case compression == source.Bzip2:
		return nil, faults.OptionsErrorf("reader: %s: bzip2 can be read but not written; use the extension of another compression, as .gz or .zst", uri)
	}
	schema.Format = format
	schema, err := rowschema.WithIndices(schema)
	if err != nil {
		return nil, faults.OptionsErrorf("reader: %s: %w", uri, err)
	}
	s := schema.WithDefaults()
	f, err := rowwriter.Create(ctx, sources, uri, len(s.Columns), func(w io.Writer) (rowwriter.Encoder, error) {
		if err := schema.ValidateRows(); err != nil {
			return nil, fmt.Errorf("reader: write %v: %w", format, err)
		}
		return newRowEncoder(&s, w)
	})
	if err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	return f, nil
}

func newRowEncoder(s *Schema, w io.Writer) (rowwriter.Encoder, error) {
	switch {
	case s.Format.Delimited():
		how := rowwriter.Delimited{Header: s.Header, Delimiter: s.Delimiter, Quoted: s.Quoting == rowschema.QuotingRFC4180}
		for i := range s.Columns {
			how.Columns = append(how.Columns, s.Columns[i].Name)
		}
		if len(s.NullValues) > 0 {
			how.Null = s.NullValues[0]
		}
		return rowwriter.NewDelimited(w, how)
	case s.Format.Indexed():
		return rowwriter.NewTokens(w, writtenTokens(s)), nil
	default:
		columns := make([]parquetcolumn.Written, len(s.Columns))
		for i := range columns {
			columns[i] = s.Columns[i].Written()
		}
		return parquetcolumn.NewWriter(w, columns), nil
	}
}

// writtenTokens says how a LibSVM or LibFFM file is written.
func writtenTokens(s *Schema) rowwriter.Tokens {
	how := rowwriter.Tokens{Label: s.ColumnIndex(s.LabelColumn()), Query: s.ColumnIndex(rowschema.QueryColumn), FFM: s.Format == FormatLibFFM}
	for i := range s.Columns {
		c := &s.Columns[i]
		t := rowwriter.Token{
			Name: c.Name, Field: c.FieldNumber, First: c.IndexRange[0], Last: c.IndexRange[1], Separator: c.Separator, WeightSeparator: c.WeightSeparator,
		}
		switch {
		case !c.HasIndexRange && !c.HasFieldNumber:
		case c.Role == RoleDense:
			t.Kind = rowwriter.Dense
		case c.Role == RoleSparse:
			seed := c.Seed()
			t.Kind, t.Key = rowwriter.Sparse, func(value []byte) uint64 { return hashes.In(seed, value) }
		}
		how.Columns = append(how.Columns, t)
	}
	return how
}
