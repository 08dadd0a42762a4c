package examples

import (
	"errors"
	"fmt"
	"slices"

	"aibox/reader/internal/parquetcolumn"
)

// Leaves says in which leaf column of a Parquet file each of a plan's columns is. A
// nil leaf means that the file has no label.
type Leaves struct {
	planned[*parquetcolumn.Leaf]
}

// Passed is the leaf of pass-through column i.
func (l *Leaves) Passed(i int) *parquetcolumn.Leaf { return l.pass[i] }

// Units calls of for each column of the plan whose integers count a unit of time, except for those
// that become readable text.
func (p *Plan) Units(l *Leaves, of func(column, unit string)) {
	columns := l.planned
	if p.readableTimes() {
		columns.pass = nil
	}
	for _, leaf := range columns.all() {
		if leaf != nil && leaf.Unit() != "" {
			of(leaf.Name, leaf.Unit())
		}
	}
}

// findLeaves looks the plan's columns up in the file's schema.
func findLeaves(file *parquetcolumn.File, p *Plan, given []partition) (found Leaves, err error) {
	var faults []error
	var missing []string
	w := p.wanted()
	if p.Raw {
		w.label = wanted{} // at most the label's text is used, as that of a pass-through column
	}
	found.planned = mapped(&w, func(w wanted) *parquetcolumn.Leaf {
		if w.name == "" {
			return nil
		}
		if file.Has(w.name) {
			leaf, err := file.Find(w.name)
			if err == nil && leaf.List && !w.list {
				err = fmt.Errorf("column %q is a list, which only sparse columns may be", w.name)
				if w.name == p.groupColumn {
					err = fmt.Errorf("column %q is a list, so it cannot define the groups of the group AUC (data.group_by)", w.name)
				}
			}
			if err != nil {
				faults = append(faults, err)
				return nil
			}
			return leaf
		}
		if i := slices.IndexFunc(given, func(g partition) bool { return g.Name == w.name }); i >= 0 {
			return parquetcolumn.Given(w.name, given[i].value)
		}
		missing = append(missing, w.name)
		if !w.optional {
			names := file.Names()
			faults = append(faults, fmt.Errorf("no column %q; the columns are %s%s", w.name, quoteAll(names), meantColumns([]string{w.name}, names)))
		}
		return nil
	})
	if len(faults) == 0 {
		return found, p.noOthers(file.Names())
	}
	if p.Raw && !p.asked {
		faults = append(faults, errors.New("leave these columns out with --columns"))
	}
	return found, p.noColumns(missing, errors.Join(faults...))
}
