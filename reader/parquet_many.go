package reader

import "slices"

// many appends the next rows to the block, at most so many, as long as there are results of all
// their columns. It returns how many; 0: the next row has to be decoded by itself.
func (r *rowGroup) many(b *block, most int) int {
	if !r.simple {
		return 0
	}
	n := most
	for _, c := range r.all {
		n = min(n, c.bulk.ready())
	}
	labels := r.label.bulk.results[r.label.bulk.lo:][:n]
	if i := slices.IndexFunc(labels, func(v bulkResult) bool { return v.state == bulkMissing }); i >= 0 {
		n = i
	}
	for i := range n {
		b.labels = append(b.labels, labels[i].number)
	}
	r.manyDense(b, n)
	r.manyFields(b, n)
	if r.p.keepBad {
		b.blanks = append(b.blanks, make([]bool, n)...)
	}
	b.n += n
	b.lines += int64(n)
	for _, c := range r.all {
		c.bulk.lo += n
	}
	return n
}

// manyDense is decodeDense for rows that many appends.
func (r *rowGroup) manyDense(b *block, n int) {
	p, width, at := r.p, r.p.denseWidth(), len(b.dense)
	b.dense = slices.Grow(b.dense, n*width)[:at+n*width]
	rows := b.dense[at:]
	for j, c := range r.dense {
		missing := p.dense[j].missing
		for i := range n {
			v := &c.bulk.results[c.bulk.lo+i]
			x := v.number
			if v.state == bulkMissing {
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
func (r *rowGroup) manyFields(b *block, n int) {
	fields, at := len(r.fields), len(b.keys)
	columns := r.columns[:0]
	for _, c := range r.fields {
		columns = append(columns, c.bulk.results[c.bulk.lo:][:n])
	}
	r.columns = columns
	keys := slices.Grow(b.keys, n*fields)[:at+n*fields]
	for i := range n {
		for _, column := range columns {
			v := &column[i]
			keys[at] = v.key
			if v.state == bulkReady {
				at++
			}
			b.offsets = append(b.offsets, int32(at))
		}
	}
	b.keys = keys[:at]
}

// ready is how many results there are before a row that has to be decoded from its value.
func (b *bulk) ready() int {
	if b.lo == b.hi && b.decode() != nil {
		return 0
	}
	if !b.slow {
		return b.hi - b.lo
	}
	results := b.results[b.lo:b.hi]
	for i := range results {
		if results[i].state == bulkSlow {
			return i
		}
	}
	return len(results)
}
