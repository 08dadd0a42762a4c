package examples

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/number"
)

// Decode appends the next row's example to the list. All columns move to the next
// row, even if this one is bad; err reports faults of the file.
func (r *RowGroup) Decode(l *List) (f faults.Fault, err error) {
	r.bad, r.err = faults.Fault{}, nil
	r.decodeLabel(l)
	r.decodeWeight(l)
	r.decodeDense(l)
	r.decodeFields(l)
	r.decodeStats(l)
	r.decodeGroup(l)
	f = r.bad
	if r.p.KeepBad {
		r.bad = faults.Fault{} // the texts of a bad row are decoded, too
	}
	for i, c := range r.pass {
		if c != nil {
			r.decodeText(l, i, c)
		}
		l.TextEnds = append(l.TextEnds, int32(len(l.Text)))
	}
	if f.Reason == faults.None {
		f = r.bad
	}
	return f, r.err
}

// next returns the next value of the current row to decode, or nil if there is none. Values after a
// fault in the row are skipped.
func (r *RowGroup) next(c *parquetcolumn.Column) *parquet.Value {
	for {
		v, err := c.Next()
		switch {
		case v == nil:
			if err != nil && r.err == nil {
				r.err = err
			}
			return nil
		case r.bad.Reason != faults.None:
		case !c.Valid(v):
			r.bad = faults.Fault{Reason: faults.ReasonUTF8, Column: c.Leaf.Name}
		default:
			return v
		}
	}
}

// number returns a value as a number. If it is none, the row is bad, unless the value is an empty
// text: that is a missing value, as in the other formats.
func (r *RowGroup) number(c *parquetcolumn.Column, v *parquet.Value, column string) (x float64, ok bool) {
	if x, ok = c.Number(v); !ok {
		if text := c.Text(v); len(number.Trim(text)) > 0 {
			r.bad = faults.Fault{Reason: faults.ReasonNumber, Column: column, Cell: text}
		}
	}
	return x, ok
}

func (r *RowGroup) decodeLabel(l *List) {
	p, c := r.p, r.label
	switch {
	case p.Raw:
		l.Labels = append(l.Labels, 0)
		return
	case c == nil:
		r.bad = p.addNoLabel(l)
		return
	}
	switch v := c.Result(); v.State {
	case parquetcolumn.Ready:
		l.Labels = append(l.Labels, v.Number)
		return
	case parquetcolumn.Missing:
		r.bad = p.addNoLabel(l)
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		if x, ok := c.Number(v); ok {
			r.bad = p.addLabelNumber(l, x, c.Text(v))
		} else {
			r.bad = p.addLabel(l, c.Text(v)) // true or false, in words
		}
	}
	if c.Seen() == 0 {
		r.bad = p.addNoLabel(l)
	}
}

func (r *RowGroup) decodeWeight(l *List) {
	c := r.weight
	if c == nil {
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		r.bad = r.p.addWeight(l, c.Text(v))
	}
	if c.Seen() == 0 {
		l.Weights = append(l.Weights, 1)
	}
}

func (r *RowGroup) decodeDense(l *List) {
	at := len(l.Dense)
	for i, c := range r.dense {
		d := &r.p.dense[i]
		if v := c.Result(); v.State != parquetcolumn.Slow {
			x := v.Number
			if v.State == parquetcolumn.Missing {
				x = d.missing
			}
			l.Dense = append(l.Dense, x)
			continue
		}
		for v := r.next(c); v != nil; v = r.next(c) {
			if x, ok := r.number(c, v, d.name); ok {
				r.bad = d.addDenseNumber(l, x, c.Text(v))
			}
		}
		if len(l.Dense) == at+i && r.bad.Reason == faults.None {
			l.Dense = append(l.Dense, d.missing)
		}
	}
	if len(l.Dense) == at+len(r.dense) { // else the row is bad
		r.p.addIndicators(l, at)
	}
}

func (r *RowGroup) decodeFields(l *List) {
	for i, c := range r.fields {
		switch v := c.Result(); v.State {
		case parquetcolumn.Ready:
			r.p.fields[i].addBucketKey(r.p, l, v.Key)
		case parquetcolumn.Slow:
			for v := r.next(c); v != nil; v = r.next(c) {
				r.bad = r.addValues(&r.p.fields[i], c, l, v)
			}
		}
		l.Offsets = append(l.Offsets, int32(len(l.Keys)))
	}
}

func (r *RowGroup) decodeStats(l *List) {
	at := len(l.Stats)
	for i, c := range r.stats {
		s := &r.p.Stats[i]
		for v := r.next(c); v != nil; v = r.next(c) {
			if x, ok := r.number(c, v, s.Name); ok {
				r.bad = s.addStatNumber(l, x, c.Text(v))
			}
		}
		if len(l.Stats) == at+i && r.bad.Reason == faults.None {
			l.Stats = append(l.Stats, math.NaN())
		}
	}
}

func (r *RowGroup) decodeGroup(l *List) {
	c := r.group
	if c == nil {
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		l.addGroup(c.Text(v))
	}
	if c.Seen() == 0 {
		l.addGroup(nil)
	}
}

// decodeText appends the text of pass-through column i. The values of a list are
// separated by the column's separator.
func (r *RowGroup) decodeText(l *List, i int, c *parquetcolumn.Column) {
	first := true
	for v := r.next(c); v != nil; v = r.next(c) {
		text := c.Text(v)
		switch {
		case !utf8.Valid(text):
			r.bad = faults.Fault{Reason: faults.ReasonUTF8, Column: c.Leaf.Name}
			continue
		case r.ambiguous[i] && c.Leaf.List && bytes.Contains(text, []byte(r.list[i])):
			r.bad = faults.Fault{Reason: faults.ReasonOutput, Column: c.Leaf.Name, Cell: text}
			continue
		}
		if !first {
			l.Text = append(l.Text, r.list[i]...)
		}
		first = false
		l.Text = append(l.Text, text...)
	}
}

// addValues appends what one Parquet value means for a field: a feature, several
// where the column has a separator, or a bucket.
func (r *RowGroup) addValues(field *fieldColumn, c *parquetcolumn.Column, l *List, v *parquet.Value) faults.Fault {
	if field.steps != nil {
		x, ok := r.number(c, v, field.name)
		if !ok {
			return r.bad
		}
		key, f := field.bucketOf(x, c.Text(v))
		if f.Reason == faults.None {
			field.addBucketKey(r.p, l, key)
		}
		return f
	}
	return field.addValues(r.p, l, c.Text(v))
}
