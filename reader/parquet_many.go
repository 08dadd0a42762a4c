package reader

import (
	"slices"

	"aibox/reader/internal/parquetcolumn"
)

// many appends the next rows to the block, at most so many, as long as there are results of all
// their columns. It returns how many; 0: the next row has to be decoded by itself.
func (r *rowGroup) many(b *block, most int) int {
	if !r.simple {
		return 0
	}
	n := most
	for i, c := range r.columns {
		r.results[i] = c.Results()
		n = min(n, len(r.results[i]))
	}
	labels, dense, fields := r.results[0], r.results[1:1+len(r.dense)], r.results[1+len(r.dense):]
	for i := range n {
		if labels[i].State == parquetcolumn.Missing {
			n = i
			break
		}
		b.labels = append(b.labels, labels[i].Number)
	}
	r.manyDense(b, dense, n)
	r.manyFields(b, fields, n)
	if r.p.keepBad {
		b.blanks = append(b.blanks, make([]bool, n)...)
	}
	b.n += n
	b.lines += int64(n)
	for _, c := range r.columns {
		c.Skip(n)
	}
	return n
}

// manyDense is decodeDense for rows that many appends.
func (r *rowGroup) manyDense(b *block, columns [][]parquetcolumn.Result, n int) {
	p, width, at := r.p, r.p.denseWidth(), len(b.dense)
	b.dense = slices.Grow(b.dense, n*width)[:at+n*width]
	rows := b.dense[at:]
	for j, column := range columns {
		missing := p.dense[j].missing
		for i := range n {
			v := &column[i]
			x := v.Number
			if v.State == parquetcolumn.Missing {
				x = missing
			}
			rows[i*width+j] = x
		}
	}
	for k, j := range p.empty {
		for i := range n {
			row := rows[i*width:][:width]
			row[len(p.dense)+k] = 0
			if row[j] != row[j] {
				row[j], row[len(p.dense)+k] = p.dense[j].instead, 1
			}
		}
	}
}

// manyFields is decodeFields for rows that many appends.
func (r *rowGroup) manyFields(b *block, columns [][]parquetcolumn.Result, n int) {
	at := len(b.keys)
	keys := slices.Grow(b.keys, n*len(columns))[:at+n*len(columns)]
	for i := range n {
		for _, column := range columns {
			v := &column[i]
			keys[at] = v.Key
			if v.State == parquetcolumn.Ready {
				at++
			}
			b.offsets = append(b.offsets, int32(at))
		}
	}
	b.keys = keys[:at]
}
