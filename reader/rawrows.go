package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// rawRows is the sequence of rows as text, in the order of the input, for
// convert: nothing is parsed but what tells cells and rows apart.
type rawRows struct {
	rows  *rows
	names []string
	cells [][]byte
}

// rawNames returns the names of the input's columns. A schema without columns
// gets them.
func rawNames(ctx context.Context, o *Options) ([]string, error) {
	if s := o.Schema.withDefaults(); len(s.Columns) > 0 {
		return s.columnNames(), nil
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

// openRaw opens the input for the named columns.
func openRaw(ctx context.Context, o Options, names []string) (*rawRows, error) {
	o.BatchSize, o.NegativeSampling = 1, 0
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := rawNames(ctx, &o); err != nil {
		return nil, err
	}
	if err := errors.Join(o.Schema.check()...); err != nil {
		return nil, optionsErrorf("reader: %w", err)
	}
	s := o.Schema.withDefaults()
	p := &plan{
		schema: s, raw: true, pass: names, keepUnlabelled: true, keepLists: o.KeepLists, labelColumn: s.labelColumn(),
		weightedBags: s.Format.indexed(),
	}
	rows, err := openRows(ctx, &o, p)
	if err != nil {
		return nil, err
	}
	return &rawRows{rows: rows, names: names, cells: make([][]byte, len(names))}, nil
}

// columnNames are the names of the columns that rows have; LibSVM and LibFFM
// have a label without naming it.
func (s *Schema) columnNames() []string {
	var names []string
	if label := s.labelColumn(); label != "" && s.column(label) < 0 && s.Format.indexed() {
		names = append(names, label)
	}
	for i := range s.Columns {
		names = append(names, s.Columns[i].Name)
	}
	return names
}

// next returns the cells of the next row, in the order of the names; they are
// valid until the next call. It returns io.EOF at the end.
func (r *rawRows) next(ctx context.Context) ([][]byte, error) {
	b, e, err := r.rows.next(ctx)
	if err != nil {
		return nil, err
	}
	ends := b.textEnds[e*len(r.names) : (e+1)*len(r.names)+1]
	for i := range r.cells {
		r.cells[i] = b.text[ends[i]:ends[i+1]]
	}
	return r.cells, nil
}

// stored is how the input stores the columns.
func (r *rawRows) stored() []Stored { return storedIn(r.rows.stream.files, len(r.names)) }

func (r *rawRows) close() error { return r.rows.close() }

// refuse makes the last row a bad one: it cannot be written.
func (r *rawRows) refuse(cells [][]byte, why error) error {
	return r.rows.refuse(ReasonOutput, why.Error(), excerpt(bytes.Join(cells, []byte{'\t'})))
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
	s := o.Schema.withDefaults()
	hasFooter := s.Format == FormatParquet
	if !s.Header && !hasFooter {
		if len(s.Columns) == 0 {
			return nil, optionsErrorf("reader: %v without a header needs the names of its columns", s.Format)
		}
		return s.columnNames(), nil
	}
	files, _, err := listFiles(ctx, &o)
	if err != nil {
		return nil, err
	}
	if !hasFooter {
		names, err := files[0].header(ctx, &o, &plan{schema: s})
		if err != nil {
			return nil, fmt.Errorf("reader: %w", err)
		}
		return names, nil
	}
	open, err := openParquet(ctx, o.Sources, files[0].File)
	if err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	var names []string
	for _, c := range open.file.Root().Columns() {
		names = append(names, c.Name())
	}
	return names, open.close()
}
