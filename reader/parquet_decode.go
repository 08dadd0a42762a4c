package reader

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
)

// decode appends the next row's example to the block. All columns move to the next
// row, even if this one is bad; err reports faults of the file.
func (r *rowGroup) decode(b *block) (f faults.Fault, err error) {
	r.bad, r.err = faults.Fault{}, nil
	r.decodeLabel(b)
	r.decodeWeight(b)
	r.decodeDense(b)
	r.decodeFields(b)
	r.decodeStats(b)
	r.decodeGroup(b)
	f = r.bad
	if r.p.keepBad {
		r.bad = faults.Fault{} // the texts of a bad row are decoded, too
	}
	for i, c := range r.pass {
		if c != nil {
			r.decodeText(b, i, c)
		}
		b.textEnds = append(b.textEnds, int32(len(b.text)))
	}
	if f.Reason == faults.None {
		f = r.bad
	}
	return f, r.err
}

// next returns the next value of the present row that has to be decoded, or nil if there
// is none. The values that follow a fault in the row are passed over.
func (r *rowGroup) next(c *parquetcolumn.Column) *parquet.Value {
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

// number returns a value as a number. If it is none, the row is bad.
func (r *rowGroup) number(c *parquetcolumn.Column, v *parquet.Value, column string) (x float64, ok bool) {
	if x, ok = c.Number(v); !ok {
		r.bad = faults.Fault{Reason: faults.ReasonNumber, Column: column, Cell: c.Text(v)}
	}
	return x, ok
}

func (r *rowGroup) decodeLabel(b *block) {
	p, c := r.p, r.label
	switch {
	case p.raw:
		b.labels = append(b.labels, 0)
		return
	case c == nil:
		r.bad = p.addNoLabel(b)
		return
	}
	switch v := c.Result(); v.State {
	case parquetcolumn.Ready:
		b.labels = append(b.labels, v.Number)
		return
	case parquetcolumn.Missing:
		r.bad = p.addNoLabel(b)
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		if x, ok := r.number(c, v, p.labelColumn); ok {
			r.bad = p.addLabelNumber(b, x, c.Text(v))
		}
	}
	if c.Seen() == 0 {
		r.bad = p.addNoLabel(b)
	}
}

func (r *rowGroup) decodeWeight(b *block) {
	c := r.weight
	if c == nil {
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		r.bad = r.p.addWeight(b, c.Text(v))
	}
	if c.Seen() == 0 {
		b.weights = append(b.weights, 1)
	}
}

func (r *rowGroup) decodeDense(b *block) {
	at := len(b.dense)
	for i, c := range r.dense {
		d := &r.p.dense[i]
		if v := c.Result(); v.State != parquetcolumn.Slow {
			x := v.Number
			if v.State == parquetcolumn.Missing {
				x = d.missing
			}
			b.dense = append(b.dense, x)
			continue
		}
		for v := r.next(c); v != nil; v = r.next(c) {
			if x, ok := r.number(c, v, d.name); ok {
				r.bad = d.addDenseNumber(b, x, c.Text(v))
			}
		}
		if c.Seen() == 0 {
			b.dense = append(b.dense, d.missing)
		}
	}
	if len(b.dense) == at+len(r.dense) { // else the row is bad
		r.p.addIndicators(b, at)
	}
}

func (r *rowGroup) decodeFields(b *block) {
	for i, c := range r.fields {
		switch v := c.Result(); v.State {
		case parquetcolumn.Ready:
			r.p.fields[i].addBucketKey(r.p, b, v.Key)
		case parquetcolumn.Slow:
			for v := r.next(c); v != nil; v = r.next(c) {
				r.bad = r.addValues(&r.p.fields[i], c, b, v)
			}
		}
		b.offsets = append(b.offsets, int32(len(b.keys)))
	}
}

func (r *rowGroup) decodeStats(b *block) {
	for i, c := range r.stats {
		s := &r.p.stats[i]
		for v := r.next(c); v != nil; v = r.next(c) {
			if x, ok := r.number(c, v, s.name); ok {
				r.bad = s.addStatNumber(b, x, c.Text(v))
			}
		}
		if c.Seen() == 0 {
			b.stats = append(b.stats, math.NaN())
		}
	}
}

func (r *rowGroup) decodeGroup(b *block) {
	c := r.group
	if c == nil {
		return
	}
	for v := r.next(c); v != nil; v = r.next(c) {
		b.addGroup(c.Text(v))
	}
	if c.Seen() == 0 {
		b.addGroup(nil)
	}
}

// decodeText appends the text of pass-through column i. The values of a list are
// separated by the column's separator.
func (r *rowGroup) decodeText(b *block, i int, c *parquetcolumn.Column) {
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
			b.text = append(b.text, r.list[i]...)
		}
		first = false
		b.text = append(b.text, text...)
	}
}

// addValues appends what one Parquet value means for a field: a feature, several
// where the column has a separator, or a bucket.
func (r *rowGroup) addValues(field *fieldColumn, c *parquetcolumn.Column, b *block, v *parquet.Value) faults.Fault {
	if field.steps != nil {
		x, ok := c.Number(v)
		if !ok {
			return faults.Fault{Reason: faults.ReasonNumber, Column: field.name, Cell: c.Text(v)}
		}
		key, f := field.bucketOf(x, c.Text(v))
		if f.Reason == faults.None {
			field.addBucketKey(r.p, b, key)
		}
		return f
	}
	return field.addValues(r.p, b, c.Text(v))
}
