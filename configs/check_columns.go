package configs

import (
	"fmt"
	"slices"

	"aibox/internal/nearest"
)

func columnPath(i int, key string) string { return fmt.Sprintf("data.columns[%d].%s", i, key) }

// columnsKnown reports whether there is a schema whose names have no faults, so that names not in
// it can be reported as unknown.
func (l *loader) columnsKnown() bool {
	if len(l.job.Data.Columns) == 0 || l.Bad("data.columns") || !l.Sound("data.format") {
		return false
	}
	for i := range l.job.Data.Columns {
		if !l.Sound(columnPath(i, "name"), columnPath(i, "role")) {
			return false
		}
	}
	return true
}

func (l *loader) columnNames(pick func(c *Column) bool) []string {
	var names []string
	for _, c := range l.job.columns(func(c *Column) bool { return pick == nil || pick(c) }) {
		names = append(names, c.Name)
	}
	return names
}

func (l *loader) checkColumns() {
	d := &l.job.Data
	if l.Bad("data.columns") {
		return
	}
	if len(d.Columns) == 0 {
		if !l.Sound("data.format") {
			return
		}
		l.FaultKey("data.columns", "format %s needs the columns: a list such as [{name: click, role: label}, {name: user}, {name: price, role: dense}]", d.Format)
		return
	}
	first := map[string]int{}
	for i := range d.Columns {
		c := &d.Columns[i]
		if c.Name != "" && l.Sound(columnPath(i, "name")) {
			if _, dup := first[c.Name]; dup {
				l.FaultAt(columnPath(i, "name"), "column %s is listed twice", nearest.Quote(c.Name))
			} else {
				first[c.Name] = i
			}
		}
		if c.Separator != "" && c.Separator == c.WeightSeparator && l.Sound(columnPath(i, "separator"), columnPath(i, "weight_separator")) {
			l.FaultAt(columnPath(i, "weight_separator"), "is the same as separator: %s", nearest.Quote(c.Separator))
		}
		if c.Missing == MissingIndicator && l.job.indicated(c) {
			l.FaultAt(columnPath(i, "missing"), "%s is the name of another column, so the feature that indicates empty cells of %s cannot have this name; write the value of an empty cell instead, such as 0", nearest.Quote(c.Name+".missing"), nearest.Quote(c.Name))
		}
		l.checkTransforms(i, c)
	}
	switch d.Format {
	case "criteo":
		l.checkCriteo()
	case "libsvm":
		l.checkRanges()
	case "libffm":
		l.checkFields()
	}
	l.checkRoles()
	if l.columnsKnown() && len(l.job.DenseColumns())+len(l.job.SparseColumns()) == 0 {
		l.FaultKey("data.columns", "no column is dense or sparse: there is nothing to learn from")
	}
}

func (l *loader) checkTransforms(i int, c *Column) {
	p := columnPath(i, "transform")
	if c.Role != "dense" && l.Sound(columnPath(i, "role")) || !l.Sound(p) {
		return
	}
	standardized := false
	for n, t := range c.Transform {
		at := fmt.Sprintf("%s[%d]", p, n)
		switch {
		case t.Kind == "bucketize" && n < len(c.Transform)-1:
			l.FaultAt(at, "bucketize must be the last step: it turns the number into a sparse feature")
		case t.Kind == "standardize" && t.Mean == nil && standardized:
			l.FaultAt(at, "only one standardize step of a column can compute mean and std from the data")
		}
		standardized = standardized || t.Kind == "standardize" && t.Mean == nil
	}
}

// checkRoles checks that each column has a role that exists in the format, and
// that there is at most one column of role label and one of role weight.
func (l *loader) checkRoles() {
	d := &l.job.Data
	marked := map[string]int{}
	for i := range d.Columns {
		c := &d.Columns[i]
		at := columnPath(i, "role")
		if !l.Sound(at) {
			continue
		}
		switch c.Role {
		case "label", "weight":
			if d.Format == "libsvm" || d.Format == "libffm" {
				l.FaultAt(at, "in %s files the label is the first number of each line, and there are no weights: a column is dense, sparse or ignore", d.Format)
				continue
			}
			if before, dup := marked[c.Role]; dup {
				l.FaultAt(at, "there can be only one %s column, and %s is one already", c.Role, nearest.Quote(d.Columns[before].Name))
				continue
			}
			marked[c.Role] = i
		}
	}
}

func (l *loader) checkCriteo() {
	names := criteoNames()
	for i := range l.job.Data.Columns {
		c := &l.job.Data.Columns[i]
		at := columnPath(i, "role")
		switch {
		case c.Name == "" || !l.Sound(columnPath(i, "name"), at):
		case !slices.Contains(names, c.Name):
			near := ""
			if n := nearest.Name(c.Name, names); n != "" {
				near = ": did you mean " + nearest.Quote(n) + "?"
			}
			l.FaultAt(columnPath(i, "name"), "%s is not a column of the Criteo format%s (label, I1 to I%d, C1 to C%d)", nearest.Quote(c.Name), near, criteoDense, criteoSparse)
		case c.Name == "label" && c.Role != "label":
			l.FaultAt(at, "this column is the label of the Criteo format: its role must be label")
		case c.Name[0] == 'I' && c.Role != "dense" && c.Role != "sparse" && c.Role != "ignore":
			l.FaultAt(at, "%s is a number: its role must be dense, sparse or ignore", c.Name)
		case c.Name[0] == 'C' && c.Role != "sparse" && c.Role != "ignore":
			l.FaultAt(at, "%s is a category: its role must be sparse or ignore", c.Name)
		}
	}
}

// checkRanges checks the index ranges of LibSVM columns.
func (l *loader) checkRanges() {
	columns := l.job.Data.Columns
	valid := map[int]bool{}
	for i := range columns {
		c := &columns[i]
		at := columnPath(i, "range")
		switch {
		case !l.Sound(at):
		case c.Role == "ignore" && c.Range == nil:
		case c.Range == nil:
			l.FaultAt(at, "is missing; give the first and last feature index of column %s, such as [1, 100]", nearest.Quote(c.Name))
		case len(c.Range) != 2:
			l.FaultAt(at, "a range is two indices, the first and the last, such as [1, 100]; found %d", len(c.Range))
		case c.Range[0] > c.Range[1]:
			l.FaultAt(at, "the range ends before it begins")
		case c.Role == "dense" && c.Range[0] != c.Range[1]:
			l.FaultAt(at, "a dense column is one number and has one index, such as [%d, %d]", c.Range[0], c.Range[0])
		default:
			for before := range i {
				b := columns[before].Range
				if valid[before] && c.Range[0] <= b[1] && b[0] <= c.Range[1] {
					l.FaultAt(at, "overlaps the range [%d, %d] of column %s", b[0], b[1], nearest.Quote(columns[before].Name))
					break
				}
			}
			valid[i] = true
		}
	}
}

// checkFields checks the field numbers of LibFFM columns.
func (l *loader) checkFields() {
	first := map[int]string{}
	for i := range l.job.Data.Columns {
		c := &l.job.Data.Columns[i]
		at := columnPath(i, "field")
		if !l.Sound(at) {
			continue
		}
		if c.Field == nil && c.Role == "ignore" {
			continue
		}
		if c.Field == nil {
			l.FaultAt(at, "is missing; give the field number of column %s in the LibFFM files", nearest.Quote(c.Name))
			continue
		}
		if other, dup := first[*c.Field]; dup {
			l.FaultAt(at, "field %d already belongs to column %s", *c.Field, nearest.Quote(other))
			continue
		}
		first[*c.Field] = c.Name
	}
}

// checkLabel checks that there is a label, and that data.label names it.
func (l *loader) checkLabel() {
	d := &l.job.Data
	if !l.Sound("data.label") {
		return
	}
	_, given := l.Given["data.label"]
	rule, err := d.LabelRule()
	if given && err != nil {
		l.FaultAt("data.label", "%s", err.Error())
		return
	}
	if !l.columnsKnown() {
		return
	}
	labels := l.columnNames(func(c *Column) bool { return c.Role == "label" })
	names := l.columnNames(nil)
	if d.Format == "libsvm" || d.Format == "libffm" {
		labels = []string{"label"} // the first number of each line
		names = labels
	}
	if !given {
		if len(labels) == 0 {
			l.FaultKey("data.columns", "no column has the role label")
		}
		return
	}
	switch {
	case len(labels) == 0 && nearest.Name(rule.Column, names) == "":
		l.FaultAt("data.label", "%s is not in data.columns: list it there, with the role label", nearest.Quote(rule.Column))
	case !slices.Contains(names, rule.Column):
		l.FaultAt("data.label", "%s is not a column%s", nearest.Quote(rule.Column), nearest.Suggest(rule.Column, names))
	case len(labels) == 0:
		l.FaultAt("data.label", "column %s needs the role label, or it would be a feature as well", nearest.Quote(rule.Column))
	case labels[0] != rule.Column:
		l.FaultAt("data.label", "names column %s, but the column of role label is %s", nearest.Quote(rule.Column), nearest.Quote(labels[0]))
	}
}
