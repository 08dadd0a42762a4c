package reader

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"aibox/internal/parquetfile"
)

// cursor walks over the values of one column of a row group.
type cursor struct {
	leaf   *parquetLeaf
	pages  parquet.Pages
	bulk   *bulk // of a simple column, which it reads instead of the cursor; else nil
	page   parquet.Page
	values parquet.ValueReader
	buffer []parquet.Value
	lo, hi int
	times  bool   // timestamps and dates become readable text, not integers
	digits bool   // booleans become the text 1 and 0, since the column is used as a number
	cell   []byte // the text of a value that is not stored as text
}

// cursorValues is how many values a cursor takes at a time.
const cursorValues = 256

func newCursor(open *openParquetFile, group int, leaf *parquetLeaf) (*cursor, error) {
	if leaf.null || leaf.given {
		return &cursor{leaf: leaf}, nil
	}
	pages, err := parquetfile.Pages(open.file, open.at, group, leaf.index)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", leaf.name, err)
	}
	return &cursor{leaf: leaf, pages: pages}, nil
}

// simplify makes the cursor decode in bulk if the column is simple.
func (c *cursor) simplify(of conversion, simple bool) {
	if simple && c != nil && c.pages != nil {
		c.bulk = newBulk(c.pages, c.leaf, of)
	}
}

// peek returns the next value without consuming it; it is valid until the next call.
// After the last one it returns io.EOF.
func (c *cursor) peek() (*parquet.Value, error) {
	for c.lo == c.hi {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return nil, err
			}
			c.page = page
			if err := checkPage(page); err != nil {
				return nil, err
			}
			c.values = page.Values()
			if c.buffer == nil {
				c.buffer = make([]parquet.Value, cursorValues)
			}
		}
		n, err := c.values.ReadValues(c.buffer)
		c.lo, c.hi = 0, n
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n == 0 {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
	}
	return &c.buffer[c.lo], nil
}

// checkPage checks that a page holds as many values as its levels announce. The
// library does not check that and would read a damaged page forever.
func checkPage(page parquet.Page) error {
	data := page.Data()
	bytes, offsets := data.Data()
	var have int64
	switch data.Kind() {
	case encoding.Undefined: // only nulls
	case encoding.Boolean:
		have = 8 * int64(len(bytes))
	case encoding.Int32, encoding.Float:
		have = int64(len(bytes)) / 4
	case encoding.Int64, encoding.Double:
		have = int64(len(bytes)) / 8
	case encoding.ByteArray:
		have = int64(len(offsets)) - 1
	case encoding.FixedLenByteArray:
		if _, size := data.FixedLenByteArray(); size > 0 {
			have = int64(len(bytes) / size)
		}
	default:
		return fmt.Errorf("a page holds values of an unknown kind, %v", data.Kind())
	}
	if want := page.NumValues() - page.NumNulls(); have < want {
		return fmt.Errorf("%w: a page has %d values where %d are announced", parquet.ErrCorrupted, have, want)
	}
	return nil
}

// row calls do for each value of the next row that is not null.
func (c *cursor) row(do func(v *parquet.Value)) error {
	if c.leaf.null {
		return nil
	}
	if c.leaf.given {
		do(&c.leaf.value)
		return nil
	}
	if c.bulk != nil {
		v, err := c.bulk.take()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("column %q: %w", c.leaf.name, err)
		}
		if !v.IsNull() {
			do(&v)
		}
		return nil
	}
	for first := true; ; first = false {
		v, err := c.peek()
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("column %q: %w", c.leaf.name, err)
		}
		if !first && v.RepetitionLevel() == 0 {
			return nil
		}
		if !v.IsNull() {
			do(v)
		}
		c.lo++
		if !c.leaf.list {
			return nil
		}
	}
}

func (c *cursor) close() error {
	if c.pages == nil {
		return nil
	}
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.bulk != nil {
		c.bulk.release()
	}
	return c.pages.Close()
}

// rowGroup decodes the rows of a row group, column after column of each row.
type rowGroup struct {
	p                           *plan
	label, weight, group        *cursor
	dense, fields, stats, texts []*cursor
	all                         []*cursor
	list                        []string // per pass-through column: the text between the values of a list
	ambiguous                   []bool   // per pass-through column: its values must not contain that text
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

// decode appends the next row's example to the block. All cursors move to the next
// row, even if this one is bad; err reports faults of the file.
func (r *rowGroup) decode(b *block) (f fault, err error) {
	p := r.p
	// each calls do for the row's values until one is at fault.
	each := func(c *cursor, do func(v *parquet.Value) fault) int {
		values := 0
		e := c.row(func(v *parquet.Value) {
			values++
			if f.reason != reasonNone {
				return
			}
			if c.leaf.text && !utf8.Valid(v.ByteArray()) {
				f = fault{reason: ReasonUTF8, column: c.leaf.name}
				return
			}
			f = do(v)
		})
		if err == nil {
			err = e
		}
		return values
	}
	switch {
	case p.raw:
		b.labels = append(b.labels, 0)
	case r.label == nil:
		f = p.addNoLabel(b)
	case r.label.takeLabel(b):
	default:
		if each(r.label, func(v *parquet.Value) fault {
			x, ok := r.label.number(v)
			if !ok {
				return fault{reason: ReasonNumber, column: p.labelColumn, cell: r.label.text(v)}
			}
			return p.addLabelNumber(b, x, r.label.text(v))
		}) == 0 && f.reason == reasonNone {
			f = p.addNoLabel(b)
		}
	}
	if r.weight != nil && each(r.weight, func(v *parquet.Value) fault { return p.addWeight(b, r.weight.text(v)) }) == 0 {
		b.weights = append(b.weights, 1)
	}
	for i, c := range r.dense {
		d := &p.dense[i]
		if c.bulk != nil {
			if v := c.bulk.next(); v.state != bulkSlow {
				x := v.number
				if v.state == bulkMissing {
					x = d.missing
				}
				b.dense = append(b.dense, x)
				continue
			}
		}
		if each(c, func(v *parquet.Value) fault {
			x, ok := c.number(v)
			if !ok {
				return fault{reason: ReasonNumber, column: d.name, cell: c.text(v)}
			}
			return d.addDenseNumber(b, x, c.text(v))
		}) == 0 {
			b.dense = append(b.dense, d.missing)
		}
	}
	for i, c := range r.fields {
		if c.bulk != nil {
			if v := c.bulk.next(); v.state != bulkSlow {
				if v.state == bulkReady {
					b.keys = append(b.keys, v.key)
					if p.weightedBags {
						b.bagWeights = append(b.bagWeights, 1)
					}
				}
				b.offsets = append(b.offsets, int32(len(b.keys)))
				continue
			}
		}
		field := &p.fields[i]
		each(c, func(v *parquet.Value) fault { return r.addValues(field, c, b, v) })
		b.offsets = append(b.offsets, int32(len(b.keys)))
	}
	for i, c := range r.stats {
		s := &p.stats[i]
		if each(c, func(v *parquet.Value) fault {
			x, ok := c.number(v)
			if !ok {
				return fault{reason: ReasonNumber, column: s.name, cell: c.text(v)}
			}
			return s.addStatNumber(b, x, c.text(v))
		}) == 0 {
			b.stats = append(b.stats, math.NaN())
		}
	}
	if r.group != nil {
		if each(r.group, func(v *parquet.Value) fault { b.addGroup(r.group.text(v)); return fault{} }) == 0 {
			b.addGroup(nil)
		}
	}
	before := f
	if p.keepBad {
		f = fault{} // the texts of a bad row are decoded, too
	}
	for i, c := range r.texts {
		if c != nil {
			first := true
			each(c, func(v *parquet.Value) fault {
				text := c.text(v)
				if !utf8.Valid(text) {
					return fault{reason: ReasonUTF8, column: c.leaf.name}
				}
				if r.ambiguous[i] && c.leaf.list && index(text, r.list[i]) >= 0 {
					return fault{reason: ReasonOutput, column: c.leaf.name, cell: text}
				}
				if !first {
					b.text = append(b.text, r.list[i]...)
				}
				first = false
				b.text = append(b.text, text...)
				return fault{}
			})
		}
		b.textEnds = append(b.textEnds, int32(len(b.text)))
	}
	if before.reason != reasonNone {
		f = before
	}
	return f, err
}

// takeLabel appends the label of the next row if there is a result of it.
func (c *cursor) takeLabel(b *block) bool {
	if c.bulk == nil || c.bulk.lo == c.bulk.hi && c.bulk.decode() != nil || c.bulk.results[c.bulk.lo].state != bulkReady {
		return false
	}
	b.labels = append(b.labels, c.bulk.next().number)
	return true
}

// addValues appends what one Parquet value means for a field: a feature, several
// where the column has a separator, or a bucket.
func (r *rowGroup) addValues(field *fieldColumn, c *cursor, b *block, v *parquet.Value) fault {
	if field.steps != nil {
		x, ok := c.number(v)
		if !ok {
			return fault{reason: ReasonNumber, column: field.name, cell: c.text(v)}
		}
		key, f := field.bucketOf(x, c.text(v))
		if f.reason == reasonNone {
			field.addBucketKey(r.p, b, key)
		}
		return f
	}
	return field.addValues(r.p, b, c.text(v))
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
	for _, column := range u.open.file.Metadata().RowGroups[u.group].Columns {
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
	rows, err := newRowGroup(p, u.open, u.group, u.file.parquet.leaves)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	for ; *row < u.end; *row++ {
		b := w.block
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
		if b.bytes() > o.blockBytes() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
