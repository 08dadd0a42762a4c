package examples

import "slices"

// Many appends the next rows, at most the given number, to the list as long as all of their columns
// have results. It returns the number of rows; 0: the next row must be decoded by itself.
func (r *RowGroup) Many(l *List, most int) int {
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
		l.Labels = append(l.Labels, labels[place])
	}
	if n == 0 {
		return 0
	}
	r.manyDense(l, r.places[1:1+len(r.dense)], n)
	r.manyFields(l, r.places[1+len(r.dense):], n)
	if r.p.KeepBad {
		l.Blanks = append(l.Blanks, make([]bool, n)...)
	}
	l.N += n
	for _, c := range r.columns {
		c.Skip(n)
	}
	return n
}

// manyDense is decodeDense for rows that many appends.
func (r *RowGroup) manyDense(l *List, columns [][]int32, n int) {
	p, width, at := r.p, r.p.DenseWidth(), len(l.Dense)
	l.Dense = slices.Grow(l.Dense, n*width)[:at+n*width]
	rows := l.Dense[at:]
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
func (r *RowGroup) manyFields(l *List, columns [][]int32, n int) {
	for f := range columns {
		r.keys[f] = r.fields[f].Keys()
	}
	at, end := len(l.Keys), len(l.Offsets)
	l.Keys = slices.Grow(l.Keys, n*len(columns))[:at+n*len(columns)]
	l.Offsets = slices.Grow(l.Offsets, n*len(columns))[:end+n*len(columns)]
	for i := range n {
		for f, places := range columns {
			if place := places[i]; place >= 0 {
				l.Keys[at] = r.keys[f][place]
				at++
			}
			l.Offsets[end] = int32(at)
			end++
		}
	}
	l.Keys = l.Keys[:at]
}
