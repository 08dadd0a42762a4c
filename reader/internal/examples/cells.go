package examples

import (
	"math"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// This file turns single cells into the columns of a list; it is shared by the
// decoders of all formats. Each function appends what its name says or returns
// what is wrong with the cell.

// addLabel appends the label that the cell means.
func (p *Plan) addLabel(l *List, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 1 && p.label.Op == "" && (cell[0] == '0' || cell[0] == '1') {
		l.Labels = append(l.Labels, float32(cell[0]-'0'))
		return faults.Fault{}
	}
	if len(cell) == 0 {
		return p.addNoLabel(l)
	}
	x, ok := rowschema.LabelNumber(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: p.LabelColumn, Cell: cell}
	}
	return p.addLabelNumber(l, x, cell)
}

// addLabelNumber appends the label that a number means; in LibSVM and LibFFM a
// label of -1 means 0.
func (p *Plan) addLabelNumber(l *List, x float64, cell []byte) faults.Fault {
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: p.LabelColumn, Cell: cell}
	}
	if x == -1 && p.label.Op == "" && p.Schema.Format.Indexed() {
		x = 0
	}
	y, ok := p.label.Label(x)
	if !ok {
		return faults.Fault{Reason: faults.ReasonLabel, Column: p.LabelColumn, Cell: cell}
	}
	l.Labels = append(l.Labels, y)
	return faults.Fault{}
}

// addNoLabel appends NaN where examples without a label are wanted.
func (p *Plan) addNoLabel(l *List) faults.Fault {
	if !p.keepUnlabelled {
		return faults.Fault{Reason: faults.ReasonNoLabel, Column: p.LabelColumn}
	}
	l.Labels = append(l.Labels, float32(math.NaN()))
	return faults.Fault{}
}

// addWeight appends the example's weight.
func (p *Plan) addWeight(l *List, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	weight := float32(1)
	if len(cell) > 0 {
		w, ok := number.Float32(cell)
		if !ok || !(w >= 0) || math.IsInf(float64(w), 0) {
			return faults.Fault{Reason: faults.ReasonWeight, Column: p.weightColumn, Cell: cell}
		}
		weight = w
	}
	l.Weights = append(l.Weights, weight)
	return faults.Fault{}
}

// addDense appends one dense feature.
func (c *denseColumn) addDense(l *List, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		l.Dense = append(l.Dense, c.missing)
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
		l.Dense = append(l.Dense, x)
		return faults.Fault{}
	}
	x, ok := number.Float64(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: c.name, Cell: cell}
	}
	return c.addDenseNumber(l, x, cell)
}

// addDenseNumber appends one dense feature that is a number already.
func (c *denseColumn) addDenseNumber(l *List, x float64, cell []byte) faults.Fault {
	// NaN and infinities are checked before the transforms, since a clip would hide them.
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	y := float32(rowschema.Transformed(c.steps, x))
	if !number.Finite(float64(y)) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.name, Cell: cell}
	}
	l.Dense = append(l.Dense, y)
	return faults.Fault{}
}

// addIndicators completes the dense features of a row, whose dense columns start at index at of the
// list.
func (p *Plan) addIndicators(l *List, at int) {
	for _, i := range p.empty {
		indicator := float32(0)
		if x := &l.Dense[at+i]; *x != *x {
			*x, indicator = p.dense[i].instead, 1
		}
		l.Dense = append(l.Dense, indicator)
	}
}

// addField appends the bag of one sparse field.
func (c *fieldColumn) addField(p *Plan, l *List, cell []byte) faults.Fault {
	if c.steps != nil {
		return c.addBucket(p, l, cell)
	}
	if c.separator == "" && c.weightSeparator == "" {
		if len(cell) > 0 {
			l.Keys = append(l.Keys, hashes.In(c.seed, cell))
			if p.weightedBags {
				l.BagWeights = append(l.BagWeights, 1)
			}
		}
		l.Offsets = append(l.Offsets, int32(len(l.Keys)))
		return faults.Fault{}
	}
	if f := c.addValues(p, l, cell); f.Reason != faults.None {
		return f
	}
	l.Offsets = append(l.Offsets, int32(len(l.Keys)))
	return faults.Fault{}
}

// addValues appends the values of a cell.
func (c *fieldColumn) addValues(p *Plan, l *List, cell []byte) faults.Fault {
	for len(cell) > 0 {
		var value []byte
		value, cell = rowtext.Cut(cell, c.separator)
		if f := c.addValue(p, l, value); f.Reason != faults.None {
			return f
		}
	}
	return faults.Fault{}
}

// addValue appends one value of a bag, "value" or "value:weight".
func (c *fieldColumn) addValue(p *Plan, l *List, cell []byte) faults.Fault {
	weight := float32(1)
	value, text, weighted := rowtext.CutWeight(cell, c.weightSeparator)
	if weighted {
		w, ok := number.Float32(number.Trim(text))
		if !ok || !number.Finite(float64(w)) {
			return faults.Fault{Reason: faults.ReasonFeature, Column: c.name, Cell: cell}
		}
		weight = bagWeight(w)
	}
	if len(value) == 0 {
		return faults.Fault{}
	}
	for _, null := range c.nulls {
		if string(value) == null {
			return faults.Fault{}
		}
	}
	l.Keys = append(l.Keys, hashes.In(c.seed, value))
	if p.weightedBags {
		l.BagWeights = append(l.BagWeights, weight)
	}
	return faults.Fault{}
}

// bagWeight returns the weight of a feature in its bag. Weights below 2^-126, which are denormal in
// float32, become 0: the mean of a bag divides by the sum of its weights, and 1 / 1e-40 is
// infinite.
func bagWeight(w float32) float32 {
	if a := math.Abs(float64(w)); a > 0 && a < 0x1p-126 {
		return 0
	}
	return w
}

// addBucket appends the feature of a bucketized dense column.
func (c *fieldColumn) addBucket(p *Plan, l *List, cell []byte) faults.Fault {
	if cell = number.Trim(cell); len(cell) > 0 {
		key, f := c.bucket(cell)
		if f.Reason != faults.None {
			return f
		}
		c.addBucketKey(p, l, key)
	}
	l.Offsets = append(l.Offsets, int32(len(l.Keys)))
	return faults.Fault{}
}

func (c *fieldColumn) addBucketKey(p *Plan, l *List, key uint64) {
	l.Keys = append(l.Keys, key)
	if p.weightedBags {
		l.BagWeights = append(l.BagWeights, 1)
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
func (c *StatColumn) addStat(l *List, cell []byte) faults.Fault {
	cell = number.Trim(cell)
	if len(cell) == 0 {
		l.Stats = append(l.Stats, math.NaN())
		return faults.Fault{}
	}
	x, ok := number.Float64(cell)
	if !ok {
		return faults.Fault{Reason: faults.ReasonNumber, Column: c.Name, Cell: cell}
	}
	return c.addStatNumber(l, x, cell)
}

// addStatNumber leaves out numbers outside the range of float32: a single one would dominate mean
// and standard deviation. The reading that follows clips them, or treats their rows as bad.
func (c *StatColumn) addStatNumber(l *List, x float64, cell []byte) faults.Fault {
	x = rowschema.Transformed(c.steps, x)
	if !number.Finite(x) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Column: c.Name, Cell: cell}
	}
	if math.Abs(x) > math.MaxFloat32 {
		x = math.NaN()
	}
	l.Stats = append(l.Stats, x)
	return faults.Fault{}
}
