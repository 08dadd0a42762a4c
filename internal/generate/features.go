package generate

import (
	"math"
	"slices"

	"aibox/internal/fixmath"
	"aibox/internal/splitmix"
)

// field is a Field with what is needed to draw its values.
type field struct {
	key    uint64 // of the hashes of its values
	most   uint64 // values per example
	weight float64
	zipf   zipf
	ids    permutation
}

func newField(seed uint64, index int, f *Field) field {
	return field{
		key:    hash(seed, forValue, uint64(index)),
		most:   uint64(max(1, f.MaxValues)),
		weight: 1 / math.Sqrt(f.meanValues()),
		zipf:   newZipf(f.Skew, f.Cardinality),
		ids:    newPermutation(f.Cardinality, hash(seed, forPermutation, uint64(index))),
	}
}

// column is a dense column: x = ⌊e^(mean + sd·normal)⌋, which is a count with a long tail
// like those in click logs.
type column struct {
	key      uint64
	mean, sd float64
}

// maxDense keeps counts within the whole numbers of float32.
const maxDense = 1 << 24

func newColumn(seed uint64, index int) column {
	key := hash(seed, forColumn, uint64(index))
	return column{key, 3 * unit(splitmix.Mix(key+1)), 0.5 + unit(splitmix.Mix(key+2))}
}

// example is the features of one example, and room to compute its logit.
type example struct {
	ranks   []uint64 // of all fields, field by field
	ends    []int    // (F) end of each field's ranks
	dense   []float64
	missing []bool

	bag, sum []float64 // (LatentDim) of one field, over the fields
}

func (g *Generator) newExample() *example {
	return &example{
		ends:  make([]int, len(g.fields)),
		dense: make([]float64, len(g.columns)), missing: make([]bool, len(g.columns)),
		bag: make([]float64, g.latentDim), sum: make([]float64, g.latentDim),
	}
}

// drawFeatures draws the features of an example. A missing dense value is 0.
func (g *Generator) drawFeatures(r *stream, e *example) {
	e.ranks = e.ranks[:0]
	for i := range g.fields {
		f := &g.fields[i]
		if !g.drawMissing(r) {
			start, n := len(e.ranks), uint64(1)
			if f.most > 1 {
				n += r.below(f.most)
			}
			for range n {
				rank := uint64(f.zipf.draw(r))
				if n == 1 || !slices.Contains(e.ranks[start:], rank) {
					e.ranks = append(e.ranks, rank)
				}
			}
		}
		e.ends[i] = len(e.ranks)
	}
	for j := range g.columns {
		c := &g.columns[j]
		e.dense[j], e.missing[j] = 0, g.drawMissing(r)
		if !e.missing[j] {
			x := fixmath.Exp(c.mean + float64(c.sd*normal(r.next())))
			e.dense[j] = min(math.Floor(x), maxDense)
		}
	}
}

func (g *Generator) drawMissing(r *stream) bool {
	return g.cfg.MissingRate > 0 && unit(r.next()) < g.cfg.MissingRate
}
