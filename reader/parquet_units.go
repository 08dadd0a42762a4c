package reader

import (
	"errors"
	"fmt"
	"strings"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
)

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
		w.block.Rollback(w.stream.plan)
		lost := u.end - row
		w.lose(faults.Damage{
			Cause: strings.TrimPrefix(err.Error(), u.file.URI+": "), Offset: -1, Rows: lost,
			Bytes: int64(float64(u.stored) * (float64(lost) / float64(u.end-u.start))),
		})
		if w.stream.plan.KeepBad {
			err = w.keepLost(row, lost)
		} else {
			w.block.lines += lost
			err = nil
		}
	}
	return errors.Join(err, w.stream.releaseParquet(u.open))
}

// keepLost adds an empty row for each lost one, from row on. If the footer is damaged too, it may
// announce more rows than the columns have values; those rows are not added.
func (w *worker) keepLost(row, lost int64) error {
	u, p := w.unit, w.stream.plan
	if err := w.flush(); err != nil { // the loss belongs before these rows
		return err
	}
	known := min(lost, u.open.LeastValues(u.number)-(row-u.start))
	for range known {
		w.block.EndBad(p)
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
	rows, err := examples.NewRowGroup(p, u.open.File, u.number, u.file.parquet.leaves)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	most := int64(o.blockBytes()/p.ReservedBytes() + parquetcolumn.BulkRows)
	for *row < u.end {
		b := w.block
		if b.N == 0 {
			b.Reserve(p, int(min(most, u.end-*row)))
		}
		if n := rows.Many(&b.List, int(min(parquetcolumn.BulkRows, u.end-*row))); n > 0 {
			*row += int64(n)
			b.lines += int64(n)
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
func (w *worker) decodeRow(rows *examples.RowGroup, b *block) error {
	o, p := w.stream.options, w.stream.plan
	f, err := rows.Decode(&b.List)
	if err != nil {
		return err
	}
	if f.Reason == faults.None {
		b.addGood(p, -1)
	} else {
		b.addBad(p, f, nil, -1, o)
	}
	b.lines++
	return nil
}
