package reader

import (
	"math"
	"slices"

	"aibox/reader/internal/faults"
	"aibox/reader/rowschema"
)

// plan is a schema compiled for decoding: what to take from which column, in the
// order of a block's columns. It is immutable and shared by all workers.
type plan struct {
	schema Schema // with defaults
	dense  []denseColumn
	empty  []int // which of the dense columns have an indicator
	fields []fieldColumn
	stats  []statColumn
	pass   []string // pass-through columns

	label          LabelRule
	labelColumn    string
	weightColumn   string // "": none
	groupColumn    string // "": none
	keepUnlabelled bool
	keepBad        bool // see Options
	weightedBags   bool // some sparse value may have a weight other than 1
	keepLists      bool // see Options
	plainLists     bool // see Options
	asked          bool // the caller named the pass-through columns, not the schema
	oneByOne       bool // see Options
	raw            bool // only the text of the pass-through columns is read; labels and features are not parsed
}

// denseColumn is one dense column. With an indicator, missing is NaN, which no feature is,
// until the row's indicators are added.
type denseColumn struct {
	name    string
	steps   []rowschema.Transform
	missing float32
	instead float32 // of NaN
}

// fieldColumn is one sparse field.
type fieldColumn struct {
	name            string
	seed            uint64 // of the embedding space
	separator       string
	weightSeparator string
	nulls           []string              // values that are missing
	steps           []rowschema.Transform // of a bucketized column, else nil
}

// statColumn is a column whose mean and standard deviation Scan computes, of the
// values that the steps before the standardize step yield.
type statColumn struct {
	name   string
	column int // in Schema.Columns
	step   int // of the standardize step
	steps  []rowschema.Transform
}

// compile makes the plan for training and prediction. Its errors are *OptionsError.
func compile(o *Options) (*plan, error) {
	if err := o.Schema.Validate(); err != nil {
		return nil, faults.OptionsErrorf("reader: %w", err)
	}
	s := o.Schema.WithDefaults()
	p := &plan{
		schema: s, label: s.Label, labelColumn: s.LabelColumn(), groupColumn: o.GroupBy,
		keepUnlabelled: o.KeepUnlabelled, keepBad: o.KeepBadRows, pass: slices.Clone(o.PassThrough), asked: true, keepLists: o.KeepLists, plainLists: o.PlainLists, oneByOne: o.oneByOne,
		weightedBags: s.Format.Indexed(),
	}
	if p.labelColumn == "" && !o.KeepUnlabelled {
		return nil, faults.OptionsErrorf("reader: schema: there is neither a column of role label nor a label rule")
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.Role == RoleWeight:
			p.weightColumn = c.Name
		case c.Role == RoleSparse:
			p.fields = append(p.fields, fieldColumn{
				name: c.Name, seed: c.Seed(), separator: c.Separator, weightSeparator: c.WeightSeparator, nulls: s.NullValues,
			})
			p.weightedBags = p.weightedBags || c.WeightSeparator != ""
		case c.Role == RoleDense && !c.Bucketized():
			d := denseColumn{name: c.Name, steps: c.Transforms, missing: c.Missing}
			if c.Indicator {
				d.missing, d.instead = float32(math.NaN()), c.Missing
				p.empty = append(p.empty, len(p.dense))
			}
			p.dense = append(p.dense, d)
		}
		for j := range c.Transforms {
			if t := &c.Transforms[j]; t.Kind == rowschema.TransformStandardize && !t.HasMeanStd {
				p.stats = append(p.stats, statColumn{name: c.Name, column: i, step: j, steps: c.Transforms[:j]})
			}
		}
	}
	for i := range s.Columns {
		if c := &s.Columns[i]; c.Bucketized() {
			p.fields = append(p.fields, fieldColumn{name: c.Name, seed: c.Seed(), steps: c.Transforms})
		}
	}
	return p, nil
}

// denseWidth is how many dense features an example has.
func (p *plan) denseWidth() int { return len(p.dense) + len(p.empty) }

// needStatistics names the first column that needs statistics from Scan; "" if none
// does.
func (p *plan) needStatistics() string {
	if len(p.stats) > 0 {
		return p.stats[0].name
	}
	return ""
}

// forScan is the plan of a scan. It decodes all features, so that the rows that
// are bad for training are bad for the statistics too.
func (p *plan) forScan() *plan {
	q := *p
	q.groupColumn, q.pass = "", nil
	return &q
}
