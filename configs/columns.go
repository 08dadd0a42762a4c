package configs

import (
	"fmt"
	"slices"
	"strings"

	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
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

// defaultColumns is the default of data.columns.
func defaultColumns(s schema.Scope) string {
	format := jobOf(s).Data.Format
	switch {
	case format == "criteo" || format == "":
		return ""
	case jobOf(s).Generate != nil:
		return generatedColumns(jobOf(s).Generate, format)
	case format == "libsvm":
		return "[{name: features, role: sparse}]"
	}
	return ""
}

// defaultTowers is the default of model.towers: one tower per group, and one for the
// dense columns without a group. Its name does not depend on how many groups there are, so that a warm start finds it
// again where a group was added.
func defaultTowers(s schema.Scope) string {
	var groups []string
	single := map[string]string{} // columns without a group
	for _, c := range jobOf(s).DenseColumns() {
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
