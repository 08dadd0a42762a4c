package examples

import (
	"math"
	"slices"

	"aibox/reader/internal/faults"
	"aibox/reader/rowschema"
)

// Plan is a schema compiled for decoding: what to take from which column, in the
// order of a list's columns. It is immutable and shared by all workers.
type Plan struct {
	Schema rowschema.Schema // with defaults
	dense  []denseColumn
	empty  []int // which of the dense columns have an indicator
	fields []fieldColumn
	Stats  []StatColumn
	pass   []string // pass-through columns

	label          rowschema.LabelRule
	LabelColumn    string
	weightColumn   string // "": none
	groupColumn    string // "": none
	keepUnlabelled bool
	KeepBad        bool // see Options
	weightedBags   bool // some sparse value may have a weight other than 1
	keepLists      bool // see Options
	plainLists     bool // see Options
	asked          bool // the caller named the pass-through columns, not the schema
	oneByOne       bool // see Options
	whole          bool // files have no columns but those of the schema
	Raw            bool // only the text of the pass-through columns is read; labels and features are not parsed
}

// denseColumn is one dense column. With an indicator, a missing value is NaN, which no feature can
// be, until the row's indicators are added.
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

// StatColumn is a column whose mean and standard deviation Scan computes, of the
// values that the steps before the standardize step yield.
type StatColumn struct {
	Name  string
	Step  int // of the standardize step
	steps []rowschema.Transform
}

// Options say what is wanted of rows besides what their schema says; see reader.Options.
type Options struct {
	Schema         rowschema.Schema
	GroupBy        string
	PassThrough    []string
	KeepLists      bool
	PlainLists     bool
	KeepUnlabelled bool
	KeepBadRows    bool
	OneByOne       bool // decodes every value of Parquet by itself, also those of simple columns
}

// New makes the plan for training and prediction. Its errors are *faults.OptionsError.
func New(w Options) (*Plan, error) {
	if err := w.Schema.Validate(); err != nil {
		return nil, faults.OptionsErrorf("reader: %w", err)
	}
	s := w.Schema.WithDefaults()
	p := &Plan{
		Schema: s, label: s.Label, LabelColumn: s.LabelColumn(), groupColumn: w.GroupBy,
		keepUnlabelled: w.KeepUnlabelled, KeepBad: w.KeepBadRows, pass: slices.Clone(w.PassThrough), asked: true,
		keepLists: w.KeepLists, plainLists: w.PlainLists, oneByOne: w.OneByOne, weightedBags: s.Format.Indexed(),
	}
	if p.LabelColumn == "" && !w.KeepUnlabelled {
		return nil, faults.OptionsErrorf("reader: schema: there is neither a column of role label nor a label rule")
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.Role == rowschema.RoleWeight:
			p.weightColumn = c.Name
		case c.Role == rowschema.RoleSparse:
			p.fields = append(p.fields, fieldColumn{
				name: c.Name, seed: c.Seed(), separator: c.Separator, weightSeparator: c.WeightSeparator, nulls: s.NullValues,
			})
			p.weightedBags = p.weightedBags || c.WeightSeparator != ""
		case c.Role == rowschema.RoleDense && !c.Bucketized():
			d := denseColumn{name: c.Name, steps: c.Transforms, missing: c.Missing}
			if c.Indicator {
				d.missing, d.instead = float32(math.NaN()), c.Missing
				p.empty = append(p.empty, len(p.dense))
			}
			p.dense = append(p.dense, d)
		}
		for j := range c.Transforms {
			if t := &c.Transforms[j]; t.Kind == rowschema.TransformStandardize && !t.HasMeanStd {
				p.Stats = append(p.Stats, StatColumn{Name: c.Name, Step: j, steps: c.Transforms[:j]})
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

// Raw returns the plan for only the text of the named columns. whole: refuse files with columns
// that the schema lacks. asked: the caller, not the schema, named the columns.
func Raw(schema rowschema.Schema, names []string, keepLists, whole, asked bool) *Plan {
	s := schema.WithDefaults()
	return &Plan{
		Schema: s, Raw: true, pass: names, whole: whole, asked: asked, keepUnlabelled: true, keepLists: keepLists, plainLists: true,
		LabelColumn: s.LabelColumn(), weightedBags: s.Format.Indexed(),
	}
}

// readableTimes says whether times in pass-through columns become readable text.
func (p *Plan) readableTimes() bool { return !p.Raw && !p.keepLists }

// DenseWidth is how many dense features an example has.
func (p *Plan) DenseWidth() int { return len(p.dense) + len(p.empty) }

// Fields is how many sparse fields an example has.
func (p *Plan) Fields() int { return len(p.fields) }

// Passed is how many pass-through columns there are.
func (p *Plan) Passed() int { return len(p.pass) }

// Grouped says whether there is a group column.
func (p *Plan) Grouped() bool { return p.groupColumn != "" }

// NeedStatistics names the first column that needs statistics from Scan; "" if none
// does.
func (p *Plan) NeedStatistics() string {
	if len(p.Stats) > 0 {
		return p.Stats[0].Name
	}
	return ""
}

// ForScan is the plan of a scan. It decodes all features, so that the rows that
// are bad for training are bad for the statistics too.
func (p *Plan) ForScan() *Plan {
	q := *p
	q.groupColumn, q.pass = "", nil
	return &q
}
