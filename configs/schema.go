package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// criteoDense and criteoSparse are the columns of the Criteo format after the
// label: I1 to I13 and C1 to C26.
const (
	criteoDense  = 13
	criteoSparse = 26
)

// Bucketized tells a dense column that its last transform turns into a sparse
// feature.
func (c *Column) Bucketized() bool {
	return c.Role == "dense" && len(c.Transform) > 0 && c.Transform[len(c.Transform)-1].Kind == "bucketize"
}

// DenseColumns returns the columns that give a dense feature, in order:
// bucketized ones do not.
func (j *Job) DenseColumns() []*Column {
	return j.columns(func(c *Column) bool { return c.Role == "dense" && !c.Bucketized() })
}

// SparseColumns returns the columns that give a sparse feature, in the order
// of the fields: the sparse ones, then the bucketized dense ones.
func (j *Job) SparseColumns() []*Column {
	sparse := j.columns(func(c *Column) bool { return c.Role == "sparse" })
	return append(sparse, j.columns((*Column).Bucketized)...)
}

func (j *Job) columns(pick func(c *Column) bool) []*Column {
	var out []*Column
	for i := range j.Data.Columns {
		if c := &j.Data.Columns[i]; pick(c) {
			out = append(out, c)
		}
	}
	return out
}

// TowerColumns returns the names of the dense columns of a tower, its groups
// replaced by their columns, in the order of the schema within a group.
func (j *Job) TowerColumns(t *Tower) []string {
	var out []string
	for _, name := range t.Dense {
		for _, c := range j.DenseColumns() {
			if (c.Name == name || c.Group == name) && !slices.Contains(out, c.Name) {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

// LabelRule turns a cell of Column into a label. Without Op the cell is 0 or
// 1; otherwise the label is 1 where "cell Op Threshold" holds.
type LabelRule struct {
	Column    string
	Op        string // "", >=, >, <=, <, ==, !=
	Threshold float64
}

var labelExpression = regexp.MustCompile(`^(.*?)\s*(>=|<=|==|!=|>|<)\s*(\S*)$`)

// ParseLabel reads data.label: a column, or a column with a threshold such as
// "rating >= 4".
func ParseLabel(text string) (LabelRule, error) {
	text = strings.TrimSpace(text)
	m := labelExpression.FindStringSubmatch(text)
	if m == nil {
		if text == "" || strings.Contains(text, "=") {
			return LabelRule{}, fmt.Errorf(`%s is not a label: write a column or a comparison such as "rating >= 4" (>=, >, <=, <, ==, !=)`, quote(text))
		}
		return LabelRule{Column: text}, nil
	}
	x, err := strconv.ParseFloat(cleanNumber(m[3]), 64)
	if m[1] == "" || err != nil {
		return LabelRule{}, fmt.Errorf(`%s is not a label: write a comparison of a column with a number, such as "rating >= 4"`, quote(text))
	}
	return LabelRule{Column: m[1], Op: m[2], Threshold: x}, nil
}

// criteoNames are the columns of the Criteo format, in order.
func criteoNames() []string {
	names := []string{"label"}
	for i := range criteoDense {
		names = append(names, fmt.Sprintf("I%d", i+1))
	}
	for i := range criteoSparse {
		names = append(names, fmt.Sprintf("C%d", i+1))
	}
	return names
}

// defaultRole is the role of a column that names none.
func defaultRole(format, name string) string {
	if format == "criteo" {
		switch {
		case name == "label":
			return "label"
		case strings.HasPrefix(name, "I"):
			return "dense"
		}
	}
	return "sparse"
}

// defaultColumns is the default of data.columns.
func defaultColumns(s scope) string {
	switch s.job.Data.Format {
	case "libsvm":
		return "[{name: features, role: sparse}]"
	case "csv", "tsv", "parquet":
		if s.job.Generate != nil {
			return generatedColumns(s.job.Generate)
		}
	}
	return ""
}

// generatedColumns is the schema of the generator's csv, tsv and parquet
// files: label, D1 … Dn, then the fields, multi-valued ones separated by "|".
// The generator's true logit is linear in log1p of the dense columns.
func generatedColumns(g *Generate) string {
	var b strings.Builder
	b.WriteString("[{name: label, role: label}")
	for i := range min(g.DenseColumns, 10000) {
		fmt.Fprintf(&b, ", {name: D%d, role: dense, transform: [log1p]}", i+1)
	}
	for _, f := range g.Fields {
		for i := range max(1, min(f.Repeat, 10000)) {
			name := f.Name
			if f.Repeat > 1 {
				name += strconv.Itoa(i + 1)
			}
			if name == "" {
				continue // reported as missing
			}
			fmt.Fprintf(&b, ", {name: %s, role: sparse", yamlText(name))
			if f.MaxValues > 1 {
				b.WriteString(`, separator: "|"`)
			}
			b.WriteString("}")
		}
	}
	b.WriteString("]")
	return b.String()
}

// defaultTowers is the default of model.towers: one tower per group.
func defaultTowers(s scope) string {
	var groups []string
	single := map[string]string{} // columns without a group
	for _, c := range s.job.DenseColumns() {
		if c.Group == "" {
			single[""] += ", " + yamlText(c.Name)
		} else if !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	var towers []string
	for _, g := range groups {
		towers = append(towers, fmt.Sprintf("{name: %s, dense: [%s]}", yamlText(g), yamlText(g)))
	}
	if rest := strings.TrimPrefix(single[""], ", "); rest != "" || towers == nil {
		towers = append(towers, fmt.Sprintf("{name: tower%d, dense: [%s]}", len(towers)+1, rest))
	}
	return "[" + strings.Join(towers, ", ") + "]"
}

// appendCriteo adds the columns of the Criteo format that the job file does
// not name behind those that it does; orderCriteo later puts all of them into
// the order of the files.
func appendCriteo(columns []Column) []Column {
	for _, name := range criteoNames() {
		if !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
			columns = append(columns, Column{Name: name})
		}
	}
	return columns
}

// orderCriteo sorts the columns into the order of the files. The marks of what
// was given move along.
func (l *loader) orderCriteo() {
	old := l.job.Data.Columns
	names := criteoNames()
	columns := make([]Column, 0, len(old))
	given := map[string]place{}
	for p, at := range l.given {
		if !strings.HasPrefix(p, "data.columns[") {
			given[p] = at
		}
	}
	for to, name := range names {
		from := slices.IndexFunc(old, func(c Column) bool { return c.Name == name })
		columns = append(columns, old[from])
		prefix := fmt.Sprintf("data.columns[%d]", from)
		for p, at := range l.given {
			if rest, ok := strings.CutPrefix(p, prefix); ok {
				given[fmt.Sprintf("data.columns[%d]%s", to, rest)] = at
			}
		}
	}
	l.job.Data.Columns, l.given = columns, given
}
