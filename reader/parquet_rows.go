package reader

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/parquetfile"
)

// cursor walks over the values of one column of a row group, row by row.
type cursor struct {
	leaf   *parquetLeaf
	values parquetfile.Values
	bulk   *bulk  // of a simple column, which it reads instead of the cursor; else nil
	of     int    // how many values of the present row were taken, nulls included
	seen   int    // how many of them are not null
	err    error  // what ended it, if anything did
	times  bool   // timestamps and dates become readable text, not integers
	digits bool   // booleans become the text 1 and 0, since the column is used as a number
	cell   []byte // the text of a value that is not stored as text

	value parquet.Value // that next has returned, if it is in no page
}

func newCursor(open *openParquetFile, group int, leaf *parquetLeaf) (*cursor, error) {
	c := &cursor{leaf: leaf}
	if leaf.null || leaf.given {
		return c, nil
	}
	if err := c.values.Begin(open.file, open.at, group, leaf.index); err != nil {
		return nil, fmt.Errorf("column %q: %w", leaf.name, err)
	}
	return c, nil
}

// simplify makes the cursor decode in bulk if the column is simple.
func (c *cursor) simplify(of conversion, simple bool) {
	if simple && c != nil {
		c.bulk = newBulk(c.values.Pages(), c.leaf, of)
	}
}

// next returns the next value of the present row that is not null. After the last one,
// and after a fault of the file, which is then in err, it returns nil, and the call after
// that is the first one of the next row. The value is valid until the next call.
func (c *cursor) next() *parquet.Value {
	if c.of == 0 {
		c.seen = 0
	}
	if c.leaf.null || c.leaf.given || c.bulk != nil {
		return c.only()
	}
	for c.of == 0 || c.leaf.list {
		v, err := c.values.Peek()
		if err != nil {
			c.fail(err)
			break
		}
		if c.of > 0 && v.RepetitionLevel() == 0 {
			break // it belongs to the next row
		}
		c.values.Skip()
		c.of++
		if !v.IsNull() {
			c.seen++
			return v
		}
	}
	c.of = 0
	return nil
}

// only is next for a column that has at most one value in a row, and not from a page:
// the same value in all rows, or one of a bulk.
func (c *cursor) only() *parquet.Value {
	if c.of > 0 || c.leaf.null {
		c.of = 0
		return nil
	}
	c.value = c.leaf.value
	if c.bulk != nil {
		var err error
		if c.value, err = c.bulk.take(); err != nil {
			c.fail(err)
			return nil
		}
		if c.value.IsNull() {
			return nil
		}
	}
	c.of, c.seen = 1, 1
	return &c.value
}

// fail notes what ended the column. That is no fault after a row's first value.
func (c *cursor) fail(err error) {
	if errors.Is(err, io.EOF) {
		if c.of > 0 {
			return
		}
		err = io.ErrUnexpectedEOF
	}
	c.err = fmt.Errorf("column %q: %w", c.leaf.name, err)
}

func (c *cursor) close() error {
	if c.bulk != nil {
		c.bulk.release()
	}
	return c.values.Close()
}

// rowGroup decodes the rows of a row group, column after column of each row.
type rowGroup struct {
	p                           *plan
	label, weight, group        *cursor
	dense, fields, stats, texts []*cursor
	all                         []*cursor
	list                        []string       // per pass-through column: the text between the values of a list
	ambiguous                   []bool         // per pass-through column: its values must not contain that text
	simple                      bool           // there are a label, dense columns and fields alone, which all decode in bulk
	columns                     [][]bulkResult // of manyFields

	// Of the present row:
	bad fault // the first fault
	err error // a fault of the file
}

func newRowGroup(p *plan, file *openParquetFile, group int, l *parquetLeaves) (*rowGroup, error) {
	r := &rowGroup{p: p}
	var faults []error
	open := func(leaf *parquetLeaf) *cursor {
		if leaf == nil {
			return nil
		}
		c, err := newCursor(file, group, leaf)
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		r.all = append(r.all, c)
		return c
	}
	openAll := func(leaves []*parquetLeaf) (cursors []*cursor) {
		for _, leaf := range leaves {
			cursors = append(cursors, open(leaf))
		}
		return cursors
	}
	r.label, r.weight, r.group = open(l.label), open(l.weight), open(l.group)
	r.dense, r.fields, r.stats, r.texts = openAll(l.dense), openAll(l.fields), openAll(l.stats), openAll(l.texts)
	if !p.oneByOne {
		r.label.simplify(newLabel(p.label))
		for i, c := range r.dense {
			c.simplify(newDense(&p.dense[i]))
		}
		for i, c := range r.fields {
			c.simplify(newKeys(&p.fields[i]))
		}
	}
	r.simple = len(r.all) == len(r.dense)+len(r.fields)+1 && r.label != nil && !p.weightedBags &&
		!slices.ContainsFunc(r.all, func(c *cursor) bool { return c.bulk == nil })
	for i, name := range p.pass {
		if at := p.schema.column(name); at >= 0 && p.raw && !p.keepLists && r.texts[i] != nil {
			role := p.schema.Columns[at].Role
			r.texts[i].digits = role == RoleLabel || role == RoleDense || role == RoleWeight
		}
		if r.texts[i] != nil {
			r.texts[i].times = !p.raw && !p.keepLists
		}
		list, chosen := p.listSeparator(name)
		r.list = append(r.list, list)
		r.ambiguous = append(r.ambiguous, p.raw && !chosen)
	}
	if len(faults) > 0 {
		return nil, errors.Join(append(faults, r.close())...)
	}
	return r, nil
}

// defaultListSeparator separates the values of a list that is written as text where
// the schema names no separator.
const defaultListSeparator = "|"

// listSeparator is the text between the values of a list in a pass-through column.
// chosen says that the schema names it; then values may contain it too, since a reader
// with that schema splits them there anyway.
func (p *plan) listSeparator(name string) (separator string, chosen bool) {
	if p.keepLists {
		return storedListSeparator, true
	}
	if i := p.schema.column(name); i >= 0 && p.schema.Columns[i].Separator != "" {
		return p.schema.Columns[i].Separator, true
	}
	return defaultListSeparator, false
}

func (r *rowGroup) close() error {
	var faults []error
	for _, c := range r.all {
		if err := c.close(); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// decodeRowGroup decodes the unit's row group. If its data are damaged, the rest of
// the row group is lost.
func (w *worker) decodeRowGroup() error {
	u := w.unit
	if u.open == nil { // a file without rows
		return nil
	}
	row := u.start
	err := guard(u.file.URI, func() error { return w.decodeRows(&row) })
	switch {
	case err == nil || w.stream.ctx.Err() != nil:
	case u.open.at.failure() != nil:
		err = fmt.Errorf("%s: row %d: %w", u.file.URI, row+1, u.open.at.failure())
	default:
		if changed := w.stream.options.Sources.Unchanged(w.stream.ctx, u.file.File); changed != nil {
			err = changed
			break
		}
		w.block.rollback(w.stream.plan)
		lost := u.end - row
		w.lose(damage{
			cause: strings.TrimPrefix(err.Error(), u.file.URI+": "), offset: -1, rows: lost,
			bytes: int64(float64(u.stored) * (float64(lost) / float64(u.end-u.start))),
		})
		if w.stream.plan.keepBad {
			err = w.keepLost(row, lost)
		} else {
			w.block.lines += lost
			err = nil
		}
	}
	return errors.Join(err, w.stream.releaseParquet(u.open))
}

// keepLost adds an empty row for each lost one, from row on. A footer that is damaged
// as well may announce more rows than the columns have values: no row is added for
// those.
func (w *worker) keepLost(row, lost int64) error {
	u, p := w.unit, w.stream.plan
	if err := w.flush(); err != nil { // the loss belongs before these rows
		return err
	}
	known := lost
	for _, column := range u.open.file.Metadata().RowGroups[u.number].Columns {
		known = min(known, column.MetaData.NumValues-(row-u.start))
	}
	for range known {
		w.block.endBad(p)
		w.block.lines++
		if w.block.bytes() > w.stream.options.blockBytes() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.block.lines += lost - max(known, 0)
	return nil
}

// decodeRows decodes the unit's rows from *row on; it advances *row past each row
// that it has decoded.
func (w *worker) decodeRows(row *int64) (err error) {
	o, p, u := w.stream.options, w.stream.plan, w.unit
	rows, err := newRowGroup(p, u.open, u.number, u.file.parquet.leaves)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	most := int64(o.blockBytes()/p.reservedBytes() + bulkRows)
	for *row < u.end {
		b := w.block
		if b.n == 0 {
			b.reserve(p, int(min(most, u.end-*row)))
		}
		if n := rows.many(b, int(min(bulkRows, u.end-*row))); n > 0 {
			*row += int64(n)
		} else if err := w.decodeRow(rows, b); err != nil {
			return err
		} else {
			*row++
		}
		if b.bytes() > o.blockBytes() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeRow decodes the next row by itself.
func (w *worker) decodeRow(rows *rowGroup, b *block) error {
	o, p := w.stream.options, w.stream.plan
	f, err := rows.decode(b)
	if err != nil {
		return err
	}
	if f.reason == reasonNone {
		b.addGood(p, -1)
	} else {
		b.addBad(f, nil, -1, o)
		b.endBad(p)
	}
	b.lines++
	return nil
}
