package reader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"aibox/reader/source"
)

// A Parquet file is decoded row group by row group; the units of a file share
// one open handle, which the last of them closes. When the input is opened only
// the footer is read, and the file closed again: a job may have thousands of
// files.

// parquetReadBytes is read of a column at a time: round trips of HDFS are few
// then, and a buffer per column is still small.
const parquetReadBytes = 128 << 10

// parquetFile is a Parquet file whose footer fits the plan.
type parquetFile struct {
	leaves parquetLeaves
	groups []int64 // rows of each row group
	rows   int64
}

// parquetLeaves says in which leaf column of a file a plan's columns are. A nil
// leaf is a label that is not there.
type parquetLeaves struct {
	label, weight, group        *parquetLeaf
	dense, fields, stats, texts []*parquetLeaf
}

// parquetLeaf is one leaf column.
type parquetLeaf struct {
	name     string
	index    int // of the column chunk
	kind     parquet.Kind
	text     bool // annotated as text: must be UTF-8
	unsigned bool
	list     bool
}

// checkParquet reads the footer and finds the plan's columns.
func checkParquet(ctx context.Context, s *source.Sources, f source.File, p *plan) (*parquetFile, error) {
	open, err := openParquet(ctx, s, f)
	if err != nil {
		return nil, err
	}
	file := &parquetFile{}
	err = guard(f.URI, func() error {
		for _, g := range open.file.RowGroups() {
			if g.NumRows() < 0 {
				return errors.New("a row group with a negative number of rows")
			}
			file.groups = append(file.groups, g.NumRows())
			file.rows += g.NumRows()
		}
		return errors.Join(checkCodecs(open.file), file.leaves.find(open.file.Root(), p))
	})
	return file, errors.Join(err, open.close())
}

// checkCodecs refuses LZ4: the library takes every fault in such data for a lack
// of room and doubles its buffer until the memory is used up.
func checkCodecs(file *parquet.File) error {
	for _, g := range file.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw {
				return errors.New("LZ4 compression of Parquet is not supported: write it with zstd, snappy or gzip")
			}
		}
	}
	return nil
}

// find looks the plan's columns up in the file's schema.
func (l *parquetLeaves) find(root *parquet.Column, p *plan) error {
	var faults []error
	leaf := func(name string, listAllowed bool) *parquetLeaf {
		found, err := findLeaf(root, name)
		if err == nil && found.list && !listAllowed {
			err = fmt.Errorf("column %q is a list; only sparse columns may be", name)
		}
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		return found
	}
	optionalLabel := p.keepUnlabelled && lookUp(root, p.labelColumn) == nil
	if !p.raw && !optionalLabel {
		l.label = leaf(p.labelColumn, false)
	}
	if p.weightColumn != "" {
		l.weight = leaf(p.weightColumn, false)
	}
	if p.groupColumn != "" {
		l.group = leaf(p.groupColumn, false)
	}
	for i := range p.dense {
		l.dense = append(l.dense, leaf(p.dense[i].name, false))
	}
	for i := range p.fields {
		l.fields = append(l.fields, leaf(p.fields[i].name, p.fields[i].steps == nil))
	}
	for i := range p.stats {
		l.stats = append(l.stats, leaf(p.stats[i].name, false))
	}
	for _, name := range p.pass {
		if name == p.labelColumn && optionalLabel {
			l.texts = append(l.texts, nil)
			continue
		}
		l.texts = append(l.texts, leaf(name, true))
	}
	return errors.Join(faults...)
}

// lookUp finds a column by its name, or by its path with dots; nil if there is
// none.
func lookUp(root *parquet.Column, name string) *parquet.Column {
	if c := root.Column(name); c != nil {
		return c
	}
	c := root
	for part := range strings.SplitSeq(name, ".") {
		if c = c.Column(part); c == nil {
			return nil
		}
	}
	return c
}

// findLeaf finds the leaf of a column: the column itself, or the element of a
// list.
func findLeaf(root *parquet.Column, name string) (*parquetLeaf, error) {
	c := lookUp(root, name)
	if c == nil {
		names := make([]string, 0, len(root.Columns()))
		for _, c := range root.Columns() {
			names = append(names, c.Name())
		}
		return nil, fmt.Errorf("no column %q; the columns are %s", name, quoteAll(names))
	}
	for !c.Leaf() {
		if children := c.Columns(); len(children) == 1 {
			c = children[0]
			continue
		}
		return nil, fmt.Errorf("column %q is a group of several columns; name one of them as in \"%s.x\"", name, name)
	}
	if c.MaxRepetitionLevel() > 1 {
		return nil, fmt.Errorf("column %q is a list of lists", name)
	}
	leaf := &parquetLeaf{name: name, index: c.Index(), kind: c.Type().Kind(), list: c.MaxRepetitionLevel() == 1}
	if leaf.kind == parquet.Int96 {
		return nil, fmt.Errorf("column %q is of type int96, which is not supported: write it as an integer or a timestamp", name)
	}
	if t := c.Type().LogicalType(); t != nil {
		if t.Decimal != nil || t.Float16 != nil {
			return nil, fmt.Errorf("column %q is of type %v, which is not supported: write it as a double or a string", name, t)
		}
		leaf.text = t.UTF8 != nil || t.Enum != nil || t.Json != nil
		leaf.unsigned = t.Integer != nil && !t.Integer.IsSigned
	}
	return leaf, nil
}

// openParquetFile is an open file and the units that still need it.
type openParquetFile struct {
	uri   string
	file  *parquet.File
	at    source.ReaderAtCloser
	units atomic.Int64
	once  sync.Once
	err   error
}

// openParquet opens a file and parses its footer.
func openParquet(ctx context.Context, s *source.Sources, f source.File) (*openParquetFile, error) {
	at, err := s.OpenAt(ctx, f)
	if err != nil {
		return nil, err
	}
	open := &openParquetFile{uri: f.URI, at: at}
	if err := guard(f.URI, func() (err error) {
		open.file, err = parquet.OpenFile(at, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
			parquet.ReadBufferSize(parquetReadBytes))
		return err
	}); err != nil {
		return nil, errors.Join(err, open.close())
	}
	return open, nil
}

// release is called once for each unit; the last call closes the file.
func (o *openParquetFile) release() error {
	if o.units.Add(-1) > 0 {
		return nil
	}
	return o.close()
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
			err = fmt.Errorf("%s: damaged Parquet file: %v", uri, fault)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", uri, err)
		}
	}()
	return do()
}

// planRowGroups submits the row groups of a file; false means that reading has
// ended.
func (s *stream) planRowGroups(file *inputFile) bool {
	if file.parquet.rows == 0 {
		return s.submit(&unit{file: file, stored: file.Size})
	}
	open, err := openParquet(s.ctx, s.options.Sources, file.File)
	if err != nil {
		return s.fail(file, err)
	}
	s.mu.Lock()
	s.mu.parquet = append(s.mu.parquet, open)
	s.mu.Unlock()
	open.units.Store(int64(len(file.parquet.groups)))
	if got := len(open.file.RowGroups()); got != len(file.parquet.groups) {
		return s.fail(file, fmt.Errorf("%s: %w: %d row groups, before %d", file.URI, source.ErrChanged, got, len(file.parquet.groups)))
	}
	// Bytes are spread over the row groups by their rows.
	row, stored := int64(0), int64(0)
	for i, rows := range file.parquet.groups {
		u := &unit{file: file, start: row, end: row + rows, open: open, group: i}
		row += rows
		until := int64(float64(file.Size) * (float64(row) / float64(file.parquet.rows)))
		u.stored, stored = until-stored, until
		if !s.submit(u) {
			return false
		}
	}
	return true
}

// closeParquet closes the files whose units have not all been decoded.
func (s *stream) closeParquet() error {
	var faults []error
	for _, open := range s.mu.parquet {
		if err := open.close(); err != nil {
			faults = append(faults, fmt.Errorf("reader: close %s: %w", open.uri, err))
		}
	}
	return errors.Join(faults...)
}
