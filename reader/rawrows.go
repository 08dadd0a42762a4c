package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
)

// RawReader yields rows as text, in the order of the input: rows are split into
// cells, but the cells are not parsed. It is for one goroutine.
type RawReader struct {
	rows  *rows
	names []string
	cells [][]byte
	bags  []*Column // by cell: the column whose values it has; nil: it has one, or none of them can be missing
}

// RawColumns returns the names of the input's columns, and adds them to a schema that
// has no columns.
func RawColumns(ctx context.Context, o *Options) ([]string, error) {
	if s := o.Schema.WithDefaults(); len(s.Columns) > 0 {
		return s.ColumnNames(), nil
	}
	names, err := ColumnNames(ctx, *o)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		o.Schema.Columns = append(o.Schema.Columns, Column{Name: name})
	}
	return names, nil
}

// OpenRaw opens the input for the named columns. Its errors are of the same kinds as
// Open's.
func OpenRaw(ctx context.Context, o Options, names []string) (*RawReader, error) {
	o.BatchSize, o.NegativeSampling, o.Start = 1, 0, nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := RawColumns(ctx, &o); err != nil {
		return nil, err
	}
	if err := o.Schema.ValidateRows(); err != nil {
		return nil, faults.OptionsErrorf("reader: %w", err)
	}
	s := o.Schema.WithDefaults()
	rows, err := openRows(ctx, &o, examples.Raw(o.Schema, names, o.KeepLists, o.Whole, false))
	if err != nil {
		return nil, AsInputError(ctx, err)
	}
	r := &RawReader{rows: rows, names: names, cells: make([][]byte, len(names)), bags: make([]*Column, len(names))}
	indices := s.ColumnIndices()
	for i, name := range names {
		if at, listed := indices[name]; listed && s.Format.Separated() && s.Columns[at].Separator+s.Columns[at].WeightSeparator != "" {
			r.bags[i] = &s.Columns[at]
		}
	}
	return r, nil
}

// Next returns the cells of the next row, in the order of the names; they are
// valid until the next call. It returns io.EOF at the end.
func (r *RawReader) Next(ctx context.Context) ([][]byte, error) {
	b, e, err := r.rows.next(ctx)
	if err != nil {
		return nil, err
	}
	ends := b.TextEnds[e*len(r.names) : (e+1)*len(r.names)+1]
	for i := range r.cells {
		r.cells[i] = b.Text[ends[i]:ends[i+1]]
		if r.bags[i] != nil {
			r.cells[i] = withoutNulls(r.bags[i], r.cells[i], r.rows.plan.Schema.NullValues)
		}
	}
	return r.cells, nil
}

// withoutNulls is a cell of the column without those of its values that are missing.
func withoutNulls(c *Column, cell []byte, nulls []string) []byte {
	if !slices.ContainsFunc(nulls, func(null string) bool { return null != "" && bytes.Contains(cell, []byte(null)) }) {
		return cell
	}
	var kept [][]byte
	for rest := cell; len(rest) > 0; {
		var value []byte
		value, rest = rowtext.Cut(rest, c.Separator)
		text, _, _ := rowtext.CutWeight(value, c.WeightSeparator)
		if !slices.Contains(nulls, string(text)) {
			kept = append(kept, value)
		}
	}
	return bytes.Join(kept, []byte(c.Separator))
}

// Columns are the names of the columns that Next returns.
func (r *RawReader) Columns() []string { return r.names }

// Schema is the input's schema, with the defaults of its format filled in.
func (r *RawReader) Schema() Schema { return r.rows.plan.Schema }

// LabelColumn is the name of the label's column, "" where there is none.
func (r *RawReader) LabelColumn() string { return r.rows.plan.LabelColumn }

// ListSeparator is the text between the values of a Parquet list in the column's
// cells.
func (r *RawReader) ListSeparator(column string) string {
	separator, _ := r.rows.plan.ListSeparator(column)
	return separator
}

// Counts says how far reading has come.
func (r *RawReader) Counts() Counts { return r.rows.snapshot() }

// Stored says how the input stores the columns.
func (r *RawReader) Stored() []Stored { return storedIn(r.rows.stream.files, len(r.names)) }

// Close stops reading. It fails if an open file of Parquet has changed. A second Close does nothing.
func (r *RawReader) Close() error { return r.rows.close() }

// Refuse counts the last row as bad, because it cannot be written.
func (r *RawReader) Refuse(cells [][]byte, why error) error {
	if r.rows.options.HideCells {
		return r.rows.refuse(faults.ReasonOutput, "", "") // the error has a cell
	}
	return r.rows.refuse(faults.ReasonOutput, why.Error(), rowtext.Excerpt(bytes.Join(cells, []byte{'\t'})))
}

// ColumnNames returns the names of the columns of the first file that is not
// empty: from its header, or from its footer in Parquet; without either, those
// of the schema.
func ColumnNames(ctx context.Context, o Options) ([]string, error) {
	o.BatchSize = 1
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := o.Schema.WithDefaults()
	hasFooter := s.Format == FormatParquet
	if !s.Header && !hasFooter {
		if len(s.Columns) == 0 {
			return nil, faults.OptionsErrorf("reader: %v without a header needs the names of its columns", s.Format)
		}
		return s.ColumnNames(), nil
	}
	files, _, err := listFiles(ctx, &o)
	if err != nil {
		return nil, err
	}
	var damaged error
	for _, f := range files {
		var names []string
		if hasFooter {
			names, err = f.footerNames(ctx, &o)
		} else {
			names, err = f.header(ctx, &o, &examples.Plan{Schema: s})
		}
		if err != nil && damagedWhole(err) {
			damaged = errors.Join(damaged, err)
			continue
		}
		if err != nil && !errors.Is(err, errNothing) {
			return nil, fmt.Errorf("reader: %w", err)
		}
		if len(names) > 0 {
			return names, nil
		}
	}
	if damaged != nil {
		return nil, fmt.Errorf("reader: %w", damaged)
	}
	return nil, fmt.Errorf("reader: %s: all of the %d files are empty: %w", strings.Join(o.URIs, ", "), len(files), ErrNoExamples)
}

// footerNames are the names of the columns in the file's footer.
func (f *inputFile) footerNames(ctx context.Context, o *Options) ([]string, error) {
	open, err := openParquet(ctx, o.Sources, f.File)
	if err != nil {
		return nil, err
	}
	return open.Names(), open.Close()
}
