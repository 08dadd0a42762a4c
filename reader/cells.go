package reader

import (
	"math"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// This file turns single cells into a block's columns; it is shared by the
// decoders of all formats. Each function appends what its name says or returns
// what is wrong with the cell.

// addLabel appends the label that the cell means.
func (p *plan) addLabel(b *block, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 1 && p.label.Op == "" && (cell[0] == '0' || cell[0] == '1') {
		b.labels = append(b.labels, float32(cell[0]-'0'))
		return faults.Fault{}
	}
	if len(cell) == 0 {
		return p.addNoLabel(b)
	}
	x, ok := number.Float64(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: p.labelColumn, Cell: cell}
	}
	return p.addLabelNumber(b, x, cell)
}

// addLabelNumber appends the label that a number means; in LibSVM and LibFFM a
// label of -1 means 0.
func (p *plan) addLabelNumber(b *block, x float64, cell []byte) faults.Fault {
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: p.labelColumn, Cell: cell}
	}
	if x == -1 && p.label.Op == "" && p.schema.Format.Indexed() {
		x = 0
	}
	y, ok := p.label.Label(x)
	if !ok {
		return faults.Fault{Reason: faults.ReasonLabel, Column: p.labelColumn, Cell: cell}
	}
	b.labels = append(b.labels, y)
	return faults.Fault{}
}

// addNoLabel appends NaN where examples without a label are wanted.
func (p *plan) addNoLabel(b *block) faults.Fault {
	if !p.keepUnlabelled {
		return faults.Fault{Reason: faults.ReasonNoLabel, Column: p.labelColumn}
	}
	b.labels = append(b.labels, float32(math.NaN()))
	return faults.Fault{}
}

// addWeight appends the example's weight.
func (p *plan) addWeight(b *block, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	weight := float32(1)
	if len(cell) > 0 {
		w, ok := number.Float32(cell)
		if !ok || !(w >= 0) || math.IsInf(float64(w), 0) {
			return faults.Fault{Reason: faults.ReasonWeight, Column: p.weightColumn, Cell: cell}
		}
		weight = w
	}
	b.weights = append(b.weights, weight)
	return faults.Fault{}
}

// addDense appends one dense feature.
func (c *denseColumn) addDense(b *block, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		b.dense = append(b.dense, c.missing)
		return faults.Fault{}
	}
	if len(c.steps) == 0 {
		x, ok := number.Float32(cell)
		if !ok {
			return faults.Fault{Reason: faults.ReasonNumber, Column: c.name, Cell: cell}
		}
		if !number.Finite(float64(x)) {
			return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
		}
		b.dense = append(b.dense, x)
		return faults.Fault{}
	}
	x, ok := number.Float64(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: c.name, Cell: cell}
	}
	return c.addDenseNumber(b, x, cell)
}

// addDenseNumber appends one dense feature that is a number already.
func (c *denseColumn) addDenseNumber(b *block, x float64, cell []byte) faults.Fault {
	// NaN and infinities are checked before the transforms, since a clip would hide them.
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	y := float32(rowschema.Transformed(c.steps, x))
	if !number.Finite(float64(y)) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	b.dense = append(b.dense, y)
	return faults.Fault{}
}

// addIndicators completes the dense features of a row whose dense columns begin at the given
// place of the block.
func (p *plan) addIndicators(b *block, at int) {
	for _, i := range p.empty {
		indicator := float32(0)
		if x := &b.dense[at+i]; *x != *x {
			*x, indicator = p.dense[i].instead, 1
		}
		b.dense = append(b.dense, indicator)
	}
}

// addField appends the bag of one sparse field.
func (c *fieldColumn) addField(p *plan, b *block, cell []byte) faults.Fault {
	if c.steps != nil {
		return c.addBucket(p, b, cell)
	}
	if c.separator == "" && c.weightSeparator == "" {
		if len(cell) > 0 {
			b.keys = append(b.keys, hashes.In(c.seed, cell))
			if p.weightedBags {
				b.bagWeights = append(b.bagWeights, 1)
			}
		}
		b.offsets = append(b.offsets, int32(len(b.keys)))
		return faults.Fault{}
	}
	if f := c.addValues(p, b, cell); f.Reason != faults.None {
		return f
	}
	b.offsets = append(b.offsets, int32(len(b.keys)))
	return faults.Fault{}
}

// addValues appends the values of a cell.
func (c *fieldColumn) addValues(p *plan, b *block, cell []byte) faults.Fault {
	for len(cell) > 0 {
		var value []byte
		value, cell = rowtext.Cut(cell, c.separator)
		if f := c.addValue(p, b, value); f.Reason != faults.None {
			return f
		}
	}
	return faults.Fault{}
}

// addValue appends one value of a bag, "value" or "value:weight".
func (c *fieldColumn) addValue(p *plan, b *block, cell []byte) faults.Fault {
	weight := float32(1)
	value, text, weighted := rowtext.CutWeight(cell, c.weightSeparator)
	if weighted {
		w, ok := number.Float32(number.Trim(text))
		if !ok || !number.Finite(float64(w)) {
			return faults.Fault{Reason: faults.ReasonFeature, Column: c.name, Cell: cell}
		}
		weight = w
	}
	if len(value) == 0 {
		return faults.Fault{}
	}
	for _, null := range c.nulls {
		if string(value) == null {
			return faults.Fault{}
		}
	}
	b.keys = append(b.keys, hashes.In(c.seed, value))
	if p.weightedBags {
		b.bagWeights = append(b.bagWeights, weight)
	}
	return faults.Fault{}
}

// addBucket appends the feature of a bucketized dense column.
func (c *fieldColumn) addBucket(p *plan, b *block, cell []byte) faults.Fault {
	if cell = number.Trim(cell); len(cell) > 0 {
		key, f := c.bucket(cell)
		if f.Reason != faults.None {
			return f
		}
		c.addBucketKey(p, b, key)
	}
	b.offsets = append(b.offsets, int32(len(b.keys)))
	return faults.Fault{}
}

func (c *fieldColumn) addBucketKey(p *plan, b *block, key uint64) {
	b.keys = append(b.keys, key)
	if p.weightedBags {
		b.bagWeights = append(b.bagWeights, 1)
	}
}

// bucket returns the key of the bucket that a number falls into.
func (c *fieldColumn) bucket(cell []byte) (uint64, faults.Fault) {
	x, ok := number.Float64(cell)
	if !ok {
		return 0, faults.Fault{Reason: faults.ReasonNumber, Column: c.name, Cell: cell}
	}
	return c.bucketOf(x, cell)
}

func (c *fieldColumn) bucketOf(x float64, cell []byte) (uint64, faults.Fault) {
	if !number.Finite(x) {
		return 0, faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	return rowschema.BucketKey(c.seed, c.steps, x), faults.Fault{}
}

// addStat appends the input of a column's mean and standard deviation.
func (c *statColumn) addStat(b *block, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		b.stats = append(b.stats, math.NaN())
		return faults.Fault{}
	}
	x, ok := number.Float64(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: c.name, Cell: cell}
	}
	return c.addStatNumber(b, x, cell)
}

func (c *statColumn) addStatNumber(b *block, x float64, cell []byte) faults.Fault {
	x = rowschema.Transformed(c.steps, x)
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	b.stats = append(b.stats, x)
	return faults.Fault{}
}

// addGroup appends the hash of a cell of the group-by column.
func (b *block) addGroup(cell []byte) { b.groups = append(b.groups, hashes.In(groupSeed, cell)) }

// groupSeed keeps group hashes apart from feature keys.
var groupSeed = hashes.Space("\x00group")

// addText appends the raw text of a pass-through column.
func (b *block) addText(cell []byte) {
	b.text = append(b.text, cell...)
	b.textEnds = append(b.textEnds, int32(len(b.text)))
}
