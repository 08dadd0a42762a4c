package reader

import (
	"errors"
	"fmt"
	"strings"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/rowschema"
)

// rowGroup decodes the rows of a row group, column after column of each row.
type rowGroup struct {
	planned[*parquetcolumn.Column]
	p         *plan
	columns   []*parquetcolumn.Column // those that are there
	list      []string                // per pass-through column: the text between the values of a list
	ambiguous []bool                  // per pass-through column: its values must not contain that text
	simple    bool                    // there are a label, dense columns and fields alone, which all decode in bulk
	places    [][]int32               // of many, by column
	keys      [][]uint64              // of many, by field: what is at the places

	// Of the present row:
	bad faults.Fault // the first fault
	err error        // a fault of the file
}

func newRowGroup(p *plan, file *parquetcolumn.File, group int, l *parquetLeaves) (*rowGroup, error) {
	r := &rowGroup{p: p}
	var faults []error
	r.planned = mapped(l, func(leaf *parquetcolumn.Leaf) *parquetcolumn.Column {
		if leaf == nil {
			return nil
		}
		c, err := file.Column(group, leaf)
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		r.columns = append(r.columns, c)
		return c
	})
	r.simplify()
	for i, name := range p.pass {
		if at := p.schema.ColumnIndex(name); at >= 0 && p.raw && !p.keepLists && r.pass[i] != nil {
			role := p.schema.Columns[at].Role
			r.pass[i].Digits = role == RoleLabel || role == RoleDense || role == RoleWeight
		}
		if r.pass[i] != nil {
			r.pass[i].Times = !p.raw && !p.keepLists
		}
		list, chosen := p.listSeparator(name)
		r.list = append(r.list, list)
		r.ambiguous = append(r.ambiguous, p.plainLists && !chosen)
	}
	if len(faults) > 0 {
		return nil, errors.Join(append(faults, r.close())...)
	}
	return r, nil
}

// simplify has simple columns decoded in bulk.
func (r *rowGroup) simplify() {
	p, simple := r.p, 0
	if p.oneByOne {
		return
	}
	bulk := func(c *parquetcolumn.Column, of *conversion) {
		if c != nil && c.Simplify(of, of.isKey) {
			simple++
		}
	}
	if p.label.Op == "" {
		bulk(r.label, &conversion{binary: true})
	}
	for i, c := range r.dense {
		bulk(c, &conversion{steps: p.dense[i].steps})
	}
	for i, c := range r.fields {
		if f := &p.fields[i]; f.steps == nil && f.separator == "" && f.weightSeparator == "" && len(f.nulls) == 0 {
			bulk(c, &conversion{isKey: true, seed: f.seed})
		}
	}
	r.simple = simple == len(r.columns) && r.label != nil && !p.weightedBags
	r.places, r.keys = make([][]int32, len(r.columns)), make([][]uint64, len(r.fields))
}

// listSeparator is the text between the values of a list in a pass-through column.
// chosen says that the schema names it; then values may contain it too, since a reader
// with that schema splits them there anyway.
func (p *plan) listSeparator(name string) (separator string, chosen bool) {
	if p.keepLists {
		return rowschema.StoredSeparator, true
	}
	if i := p.schema.ColumnIndex(name); i >= 0 && p.schema.Columns[i].Separator != "" {
		return p.schema.Columns[i].Separator, true
	}
	return rowschema.ListSeparator, false
}

func (r *rowGroup) close() error {
	var faults []error
	for _, c := range r.columns {
		if err := c.Close(); err != nil {
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
	err := u.open.Guard(func() error { return w.decodeRows(&row) })
	switch {
	case err == nil || w.stream.ctx.Err() != nil:
	case u.open.Failure() != nil:
		err = fmt.Errorf("%s: row %d: %w", u.file.URI, row+1, u.open.Failure())
	default:
		if changed := w.stream.options.Sources.Unchanged(w.stream.ctx, u.file.File); changed != nil {
			err = changed
			break
		}
		w.block.rollback(w.stream.plan)
		lost := u.end - row
		w.lose(faults.Damage{
			Cause: strings.TrimPrefix(err.Error(), u.file.URI+": "), Offset: -1, Rows: lost,
			Bytes: int64(float64(u.stored) * (float64(lost) / float64(u.end-u.start))),
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
	known := min(lost, u.open.LeastValues(u.number)-(row-u.start))
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
	rows, err := newRowGroup(p, u.open.File, u.number, u.file.parquet.leaves)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	most := int64(o.blockBytes()/p.reservedBytes() + parquetcolumn.BulkRows)
	for *row < u.end {
		b := w.block
		if b.n == 0 {
			b.reserve(p, int(min(most, u.end-*row)))
		}
		if n := rows.many(b, int(min(parquetcolumn.BulkRows, u.end-*row))); n > 0 {
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
	if f.Reason == faults.None {
		b.addGood(p, -1)
	} else {
		b.addBad(f, nil, -1, o)
		b.endBad(p)
	}
	b.lines++
	return nil
}
