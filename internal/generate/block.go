package generate

import (
	"strconv"

	"aibox/internal/fixmath"
)

// Block has consecutive examples of a day, in columns. It belongs to the generator, which
// fills it with other examples after the callback that got it has returned.
type Block struct {
	Day   int
	First int64 // index within the day of the first example
	N     int

	Labels []float32 // (N) 0 or 1
	Logits []float64 // (N) of the true probabilities

	Dense   []float32 // (N, D) whole numbers from 0 to 2^24; 0 where missing
	Missing []bool    // (N, D)

	// The values of field f of example e are Values[Offsets[e*F+f]:Offsets[e*F+f+1]],
	// ids below the field's cardinality, different from one another, none for
	// an empty cell.
	Offsets []int32 // (N*F+1)
	Values  []uint64
}

// reset makes room for n examples.
func (b *Block) reset(day int, first int64, n, fields, columns int) {
	b.Day, b.First, b.N = day, first, n
	b.Labels = resize(b.Labels, n)
	b.Logits = resize(b.Logits, n)
	b.Dense = resize(b.Dense, n*columns)
	b.Missing = resize(b.Missing, n*columns)
	b.Offsets = append(resize(b.Offsets, n*fields+1)[:0], 0)
	b.Values = b.Values[:0]
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// fill draws examples first to first+n of a day.
func (g *Generator) fill(b *Block, d *day, e *example, first int64, n int) {
	columns := len(g.columns)
	b.reset(d.number, first, n, len(g.fields), columns)
	for i := range n {
		r := stream(hash(g.cfg.Seed, forExample, uint64(d.number), uint64(first)+uint64(i)))
		g.drawFeatures(&r, e)
		start := 0
		for f, end := range e.ends {
			for _, rank := range e.ranks[start:end] {
				b.Values = append(b.Values, g.fields[f].ids.at(rank-1))
			}
			start = end
			b.Offsets = append(b.Offsets, int32(len(b.Values)))
		}
		for j, x := range e.dense {
			b.Dense[i*columns+j] = float32(x)
		}
		copy(b.Missing[i*columns:], e.missing)
		b.Logits[i] = g.logit(d, e)
		b.Labels[i] = 0
		if unit(r.next()) < fixmath.Sigmoid(b.Logits[i]) {
			b.Labels[i] = 1
		}
	}
}

func (g *Generator) logit(d *day, e *example) float64 {
	logit := d.bias + float64(g.linearScale*g.linearPart(d, e))
	if g.latentDim > 0 {
		logit += float64(g.pairwiseScale * g.pairwisePart(d, e))
	}
	return logit
}

// AppendValue appends the text of a value of a field in the form of Criteo's logs: its id
// in hexadecimal with 8 digits, or with 16 if the field has more than 2^32 values.
func (g *Generator) AppendValue(dst []byte, field int, id uint64) []byte {
	digits := 8
	if g.cfg.Fields[field].Cardinality > 1<<32 {
		digits = 16
	}
	for limit := uint64(1) << (4 * (digits - 1)); limit > id && limit > 1; limit >>= 4 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, id, 16)
}
