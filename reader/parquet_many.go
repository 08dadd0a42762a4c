package reader

import "slices"

// many appends the next rows to the block, at most so many, as long as there are results of all
// their columns. It returns how many; 0: the next row has to be decoded by itself.
func (r *rowGroup) many(b *block, most int) int {
	if !r.simple {
		return 0
	}
	n := most
	for i, c := range r.columns {
		r.places[i] = c.Places()
		n = min(n, len(r.places[i]))
	}
	labels := r.label.Numbers()
	for i, place := range r.places[0][:n] {
		if place < 0 {
			n = i
			break
		}
		b.labels = append(b.labels, labels[place])
	}
	if n == 0 {
		return 0
	}
	r.manyDense(b, r.places[1:1+len(r.dense)], n)
	r.manyFields(b, r.places[1+len(r.dense):], n)
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
func (r *rowGroup) manyDense(b *block, columns [][]int32, n int) {
	p, width, at := r.p, r.p.denseWidth(), len(b.dense)
	b.dense = slices.Grow(b.dense, n*width)[:at+n*width]
	rows := b.dense[at:]
	for j, places := range columns {
		numbers, missing := r.dense[j].Numbers(), p.dense[j].missing
		for i, place := range places[:n] {
			x := missing
			if place >= 0 {
				x = numbers[place]
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
func (r *rowGroup) manyFields(b *block, columns [][]int32, n int) {
	for f := range columns {
		r.keys[f] = r.fields[f].Keys()
	}
	at, end := len(b.keys), len(b.offsets)
	b.keys = slices.Grow(b.keys, n*len(columns))[:at+n*len(columns)]
	b.offsets = slices.Grow(b.offsets, n*len(columns))[:end+n*len(columns)]
	for i := range n {
		for f, places := range columns {
			if place := places[i]; place >= 0 {
				b.keys[at] = r.keys[f][place]
				at++
			}
			b.offsets[end] = int32(at)
			end++
		}
	}
	b.keys = b.keys[:at]
}
