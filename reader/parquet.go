package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/parquetfile"
	"aibox/reader/source"
)

// A Parquet file is decoded row group by row group; the units of a file share
// one open handle, which the last of them closes. When the input is opened only
// the footer is read, and the file closed again: a job may have thousands of
// files.

// parquetReadBytes is how much is read of a column at a time: enough to keep the
// round trips of HDFS few, and little enough to keep the buffers of the columns small.
const parquetReadBytes = 128 << 10

// parquetFile is a Parquet file whose footer fits the plan.
type parquetFile struct {
	leaves *parquetLeaves // shared by files with the same columns; nil in a file without rows
	groups []int64        // rows of each row group
	rows   int64
}

// parquetLeaves says in which leaf column of a file each of a plan's columns is. A
// nil leaf means that the file has no label.
type parquetLeaves struct {
	label, weight, group        *parquetLeaf
	dense, fields, stats, texts []*parquetLeaf
}

// parquetLeaf is one leaf column.
type parquetLeaf struct {
	name     string
	index    int // of the column chunk
	kind     parquet.Kind
	typ      parquet.Type
	text     bool // annotated as text: must be UTF-8
	unsigned bool
	list     bool
	levels   int  // definition level of a value that is there
	null     bool // the column is of null type, which writers give to a column without values
	float16  bool
	decimal  bool
	scale    int   // of a decimal: digits behind the point
	tick     int64 // of a timestamp: its unit in nanoseconds; 0: the column is no timestamp
	utc      bool  // of a timestamp: it is an instant (UTC), not a local time without a zone
	date     bool  // the column holds dates, as days since 1970
	given    bool  // the file's directories give the column, which is value in every row
	value    parquet.Value
}

// checkParquet reads the footer and finds the plan's columns.
//
// A file without rows may have any columns, or none.
func checkParquet(ctx context.Context, s *source.Sources, f source.File, p *plan, shared *sharedLeaves) (*parquetFile, error) {
	open, err := openParquet(ctx, s, f)
	if err != nil {
		return nil, err
	}
	file := &parquetFile{}
	err = guard(f.URI, func() error {
		for _, g := range open.file.RowGroups() {
			if g.NumRows() < 0 {
				return &damagedParquet{errors.New("damaged Parquet file: a row group with a negative number of rows"), false}
			}
			file.groups = append(file.groups, g.NumRows())
			file.rows += g.NumRows()
		}
		if file.rows == 0 {
			return nil
		}
		leaves := &parquetLeaves{}
		err := errors.Join(leaves.find(open.file, p, partitionsOf(f.URI)), parquetfile.CheckCodecs(open.file, leaves.columns()))
		file.leaves = shared.of(leaves)
		return err
	})
	return file, errors.Join(err, open.close())
}

// sharedLeaves keeps one copy of the leaves that many files have in common: thousands
// of files mostly have the same columns, and a leaf keeps a part of the footer that it
// comes from in memory.
type sharedLeaves struct {
	mu        sync.Mutex
	byColumns map[string]*parquetLeaves
}

// of returns the shared leaves that equal these ones.
func (s *sharedLeaves) of(l *parquetLeaves) *parquetLeaves {
	var key strings.Builder
	for _, list := range [][]*parquetLeaf{{l.label, l.weight, l.group}, l.dense, l.fields, l.stats, l.texts} {
		for _, leaf := range list {
			if leaf != nil {
				rest := *leaf
				rest.typ, rest.value = nil, parquet.Value{}
				fmt.Fprintf(&key, "%q %+v %v %q", leaf.name, rest, leaf.typ, leaf.value)
			}
			key.WriteByte('\n')
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if same := s.byColumns[key.String()]; same != nil {
		return same
	}
	s.byColumns[key.String()] = l
	return l
}

// columns are the indices of the columns that are read.
func (l *parquetLeaves) columns() (list []int) {
	for _, leaf := range l.all() {
		if !leaf.given {
			list = append(list, leaf.index)
		}
	}
	return list
}

// all lists the leaves that are there.
func (l *parquetLeaves) all() []*parquetLeaf {
	list := slices.Concat([]*parquetLeaf{l.label, l.weight, l.group}, l.dense, l.fields, l.stats, l.texts)
	return slices.DeleteFunc(list, func(leaf *parquetLeaf) bool { return leaf == nil })
}

// find looks the plan's columns up in the file's schema.
func (l *parquetLeaves) find(file *parquet.File, p *plan, given []partition) error {
	var faults []error
	root, elements := file.Root(), leafElements(file.Metadata())
	leaf := func(name string, listAllowed bool) *parquetLeaf {
		if i := slices.IndexFunc(given, func(g partition) bool { return g.name == name }); i >= 0 && lookUp(root, name) == nil {
			return givenLeaf(given[i])
		}
		found, err := findLeaf(root, elements, name)
		if err == nil && found.list && !listAllowed {
			err = fmt.Errorf("column %q is a list; only sparse columns may be", name)
		}
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		return found
	}
	isGiven := slices.ContainsFunc(given, func(g partition) bool { return g.name == p.labelColumn })
	optionalLabel := p.keepUnlabelled && lookUp(root, p.labelColumn) == nil && !isGiven
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
	if len(faults) > 0 && p.raw && !p.asked {
		faults = append(faults, errors.New("leave these columns out by --columns"))
	}
	missing := slices.DeleteFunc(slices.Clone(p.pass), func(name string) bool {
		return lookUp(root, name) != nil || slices.ContainsFunc(given, func(g partition) bool { return g.name == name })
	})
	if err := errors.Join(faults...); err != nil {
		return p.noColumns(missing, err)
	}
	return nil
}

// givenLeaf is a column that is not in the file, but given by its directories.
func givenLeaf(g partition) *parquetLeaf {
	leaf := &parquetLeaf{name: g.name, kind: parquet.ByteArray, typ: parquet.String().Type(), text: true, given: true, null: g.value == nil}
	if g.value != nil {
		leaf.value = parquet.ByteArrayValue(g.value)
	}
	return leaf
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
	s.mu.parquet[open] = struct{}{}
	s.mu.Unlock()
	open.units.Store(int64(len(file.parquet.groups) - file.from))
	if got := len(open.file.RowGroups()); got != len(file.parquet.groups) {
		return s.fail(file, fmt.Errorf("%s: %w: %d row groups, before %d", file.URI, source.ErrChanged, got, len(file.parquet.groups)))
	}
	// The file's bytes are divided among the row groups in proportion to their rows.
	row, stored := int64(0), int64(0)
	for i, rows := range file.parquet.groups {
		u := &unit{file: file, number: i, start: row, end: row + rows, open: open}
		row += rows
		until := int64(float64(file.Size) * (float64(row) / float64(file.parquet.rows)))
		u.stored, stored = until-stored, until
		if i >= file.from && !s.submit(u) {
			return false
		}
	}
	return true
}

// releaseParquet is called once for each unit of a file; the last call closes the
// file and drops its footer.
func (s *stream) releaseParquet(o *openParquetFile) error {
	if o.units.Add(-1) > 0 {
		return nil
	}
	s.mu.Lock()
	delete(s.mu.parquet, o)
	s.mu.Unlock()
	return o.close()
}

// closeParquet closes the files whose units have not all been decoded.
func (s *stream) closeParquet() error {
	var faults []error
	for open := range s.mu.parquet {
		if err := open.close(); err != nil {
			faults = append(faults, fmt.Errorf("reader: close %s: %w", open.uri, err))
		}
	}
	return errors.Join(faults...)
}
