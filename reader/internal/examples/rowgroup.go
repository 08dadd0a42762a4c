package examples

import (
	"errors"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/rowschema"
)

// RowGroup decodes the rows of a row group, column after column of each row.
type RowGroup struct {
	planned[*parquetcolumn.Column]
	p         *Plan
	columns   []*parquetcolumn.Column // those that are there
	list      []string                // per pass-through column: the text between the values of a list
	ambiguous []bool                  // per pass-through column: its values must not contain that text
	simple    bool                    // there are a label, dense columns and fields alone, which all decode in bulk
	places    [][]int32               // of many, by column
	keys      [][]uint64              // of many, by field: what is at the places

	// Of the present row:
	bad faults.Fault // the first fault
	err error        // a fault of the file
}

func NewRowGroup(p *Plan, file *parquetcolumn.File, group int, leaves *Leaves) (*RowGroup, error) {
	r := &RowGroup{p: p}
	var faults []error
	r.planned = mapped(&leaves.planned, func(leaf *parquetcolumn.Leaf) *parquetcolumn.Column {
		if leaf == nil {
			return nil
		}
		c, err := file.Column(group, leaf)
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		r.columns = append(r.columns, c)
		return c
	})
	r.simplify()
	indices := p.Schema.ColumnIndices()
	for i, name := range p.pass {
		if at, listed := indices[name]; listed && p.Raw && !p.keepLists && r.pass[i] != nil {
			role := p.Schema.Columns[at].Role
			r.pass[i].Digits = role == rowschema.RoleLabel || role == rowschema.RoleDense || role == rowschema.RoleWeight
		}
		if r.pass[i] != nil {
			r.pass[i].Times = p.readableTimes()
		}
		list, chosen := p.ListSeparator(name)
		r.list = append(r.list, list)
		r.ambiguous = append(r.ambiguous, p.plainLists && !chosen)
	}
	if len(faults) > 0 {
		return nil, errors.Join(append(faults, r.Close())...)
	}
	return r, nil
}

// simplify switches simple columns to bulk decoding.
func (r *RowGroup) simplify() {
	p, simple := r.p, 0
	if p.oneByOne {
		return
	}
	bulk := func(c *parquetcolumn.Column, of *conversion) {
		if c != nil && c.Simplify(of, of.isKey) {
			simple++
		}
	}
	if p.label.Op == "" {
		bulk(r.label, &conversion{binary: true})
	}
	for i, c := range r.dense {
		bulk(c, &conversion{steps: p.dense[i].steps})
	}
	for i, c := range r.fields {
		if f := &p.fields[i]; f.steps == nil && f.separator == "" && f.weightSeparator == "" && len(f.nulls) == 0 {
			bulk(c, &conversion{isKey: true, seed: f.seed})
		}
	}
	r.simple = simple == len(r.columns) && r.label != nil && !p.weightedBags
	r.places, r.keys = make([][]int32, len(r.columns)), make([][]uint64, len(r.fields))
}

// ListSeparator returns the text between the values of a list in a pass-through column. chosen: the
// schema names it; values may then contain it, because a reader with that schema splits there
// anyway.
func (p *Plan) ListSeparator(name string) (separator string, chosen bool) {
	if p.keepLists {
		return rowschema.StoredSeparator, true
	}
	if i := p.Schema.ColumnIndex(name); i >= 0 && p.Schema.Columns[i].Separator != "" {
		return p.Schema.Columns[i].Separator, true
	}
	return rowschema.ListSeparator, false
}

func (r *RowGroup) Close() error {
	var faults []error
	for _, c := range r.columns {
		if err := c.Close(); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
