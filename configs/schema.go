package configs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// criteoDense and criteoSparse are the columns of the Criteo format after the
// label: I1 to I13 and C1 to C26.
const (
	criteoDense  = 13
	criteoSparse = 26
)

// Bucketized reports whether c is a dense column that its last transform turns into
// a sparse feature.
func (c *Column) Bucketized() bool {
	return c.Role == "dense" && len(c.Transform) > 0 && c.Transform[len(c.Transform)-1].Kind == "bucketize"
}

// DenseColumns returns the columns that give a dense feature, in order:
// bucketized ones do not.
func (j *Job) DenseColumns() []*Column {
	return j.columns(func(c *Column) bool { return c.Role == "dense" && !c.Bucketized() })
}

// indicated reports whether another column has the name of the feature that says where c is
// empty.
func (j *Job) indicated(c *Column) bool {
	return slices.ContainsFunc(j.Data.Columns, func(o Column) bool { return o.Name == c.Name+".missing" })
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

// wrongComparison matches comparisons that data.label does not know, such as => or =.
var wrongComparison = regexp.MustCompile(`[^<>=!\s]\s*(=>|=<|<>|=)\s*[^<>=!\s]`)

var meantComparison = map[string]string{"=>": ">=", "=<": "<=", "<>": "!=", "=": "=="}

// ParseLabel reads data.label: a column, or a column with a threshold such as
// "rating >= 4".
func ParseLabel(text string) (LabelRule, error) {
	text = strings.TrimSpace(text)
	if m := wrongComparison.FindStringSubmatch(text); m != nil {
		return LabelRule{}, fmt.Errorf("%s is not a label: %s is not a comparison, did you mean %s?", nearest.Quote(text), m[1], meantComparison[m[1]])
	}
	m := labelExpression.FindStringSubmatch(text)
	if m == nil {
		if text == "" || strings.Contains(text, "=") {
			return LabelRule{}, fmt.Errorf(`%s is not a label: write a column or a comparison such as "rating >= 4" (>=, >, <=, <, ==, !=)`, nearest.Quote(text))
		}
		return LabelRule{Column: text}, nil
	}
	x, err := yamltree.ParseFloat(m[3])
	if m[1] == "" || err != nil {
		return LabelRule{}, fmt.Errorf(`%s is not a label: write a comparison of a column with a number, such as "rating >= 4"`, nearest.Quote(text))
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
	format := s.job.Data.Format
	switch {
	case format == "criteo" || format == "":
		return ""
	case s.job.Generate != nil:
		return generatedColumns(s.job.Generate, format)
	case format == "libsvm":
		return "[{name: features, role: sparse}]"
	}
	return ""
}

// generatedColumns is the schema of the generator's files in formats other than
// criteo: label, D1 … Dn, then the fields. Values of a multi-valued field are
// separated by "|". Dense columns get log1p, in which the generator's true logit is
// linear. In LibSVM and LibFFM the label needs no column. In LibFFM the columns have the field
// numbers 0, 1, …; in LibSVM the dense columns have the indices 1 to n, and each
// field has as many of the following ones as it has values.
func generatedColumns(g *Generate, format string) string {
	indexed := format == "libsvm" || format == "libffm"
	var columns []string
	if !indexed {
		columns = append(columns, "{name: label, role: label}")
	}
	next := int64(1)
	indices := func(count int64) string {
		switch format {
		case "libsvm":
			first := next
			next += count
			return fmt.Sprintf(", range: [%d, %d]", first, next-1)
		case "libffm":
			return fmt.Sprintf(", field: %d", len(columns))
		}
		return ""
	}
	for i := range min(g.DenseColumns, maxRepeat) {
		columns = append(columns, fmt.Sprintf("{name: D%d, role: dense, transform: [log1p]%s}", i+1, indices(1)))
	}
	fields := int64(0)
	for _, f := range g.Fields {
		fields += int64(max(1, min(f.Repeat, maxRepeat)))
	}
	for _, f := range g.Fields {
		// All ranges together end before 2^63.
		values := max(1, min(f.Cardinality, (math.MaxInt64-maxRepeat)/max(1, fields)))
		for i := range max(1, min(f.Repeat, maxRepeat)) {
			name := f.Name
			if f.Repeat > 1 {
				name += strconv.Itoa(i + 1)
			}
			if name == "" {
				continue // reported as missing
			}
			separator := ""
			if f.MaxValues > 1 && !indexed {
				separator = `, separator: "|"`
			}
			columns = append(columns, fmt.Sprintf("{name: %s, role: sparse%s%s}", yamltree.Text(name), separator, indices(values)))
		}
	}
	return "[" + strings.Join(columns, ", ") + "]"
}

// maxRepeat bounds the number of columns that a faulty generate section can make.
const maxRepeat = 10000

// defaultTowers is the default of model.towers: one tower per group, and one for the
// dense columns without a group. Its name does not depend on how many groups there are, so that a warm start finds it
// again where a group was added.
func defaultTowers(s scope) string {
	var groups []string
	single := map[string]string{} // columns without a group
	for _, c := range s.job.DenseColumns() {
		if c.Group == "" {
			single[""] += ", " + yamltree.Text(c.Name)
		} else if !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	var towers []string
	for _, g := range groups {
		towers = append(towers, fmt.Sprintf("{name: %s, dense: [%s]}", yamltree.Text(g), yamltree.Text(g)))
	}
	if rest := strings.TrimPrefix(single[""], ", "); rest != "" || towers == nil {
		n := 1
		for slices.Contains(groups, fmt.Sprintf("tower%d", n)) {
			n++
		}
		towers = append(towers, fmt.Sprintf("{name: tower%d, dense: [%s]}", n, rest))
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

// orderCriteo sorts the columns into the order of the files, and renames the paths
// in l.given accordingly.
func (l *loader) orderCriteo() {
	old := l.job.Data.Columns
	names := criteoNames()
	columns := make([]Column, 0, len(old))
	given := map[string]yamltree.Place{}
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
