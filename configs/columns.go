package configs

import (
	"fmt"
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

// indicated reports whether another column has the name of c's indicator feature.
func (j *Job) indicated(c *Column) bool {
	return j.columnNames[c.Name+".missing"]
}

// nameColumns records the names of all columns for the checks.
func (j *Job) nameColumns() {
	j.columnNames = make(map[string]bool, len(j.Data.Columns))
	for i := range j.Data.Columns {
		j.columnNames[j.Data.Columns[i].Name] = true
	}
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

// TowerColumns returns the names of the dense columns of each tower, its groups
// replaced by their columns, in the order of the schema within a group.
func (j *Job) TowerColumns() [][]string {
	meant := j.towerNames()
	towers := make([][]string, len(j.Model.Towers))
	for i, t := range j.Model.Towers {
		seen := map[string]bool{}
		for _, name := range t.Dense {
			for _, c := range meant[name] {
				if !seen[c] {
					seen[c], towers[i] = true, append(towers[i], c)
				}
			}
		}
	}
	return towers
}

// towerNames maps what towers may name, dense columns and groups of them, to the names of the columns.
func (j *Job) towerNames() map[string][]string {
	meant := map[string][]string{}
	for _, c := range j.DenseColumns() {
		meant[c.Name] = append(meant[c.Name], c.Name)
		if c.Group != "" && c.Group != c.Name {
			meant[c.Group] = append(meant[c.Group], c.Name)
		}
	}
	return meant
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

// defaultTowers is the default of model.towers: one tower per group, and one for the dense columns
// without a group. Its name does not depend on how many groups there are, so that a warm start
// finds it again where a group was added.
func defaultTowers(s schema.Scope) string {
	var towers, single []string // single: columns without a group
	groups := map[string]bool{}
	for _, c := range jobOf(s).DenseColumns() {
		if c.Group == "" {
			single = append(single, yamltree.Text(c.Name))
		} else if !groups[c.Group] {
			groups[c.Group] = true
			towers = append(towers, fmt.Sprintf("{name: %s, dense: [%s]}", yamltree.Text(c.Group), yamltree.Text(c.Group)))
		}
	}
	if single != nil || towers == nil {
		n := 1
		for groups[fmt.Sprintf("tower%d", n)] {
			n++
		}
		towers = append(towers, fmt.Sprintf("{name: tower%d, dense: [%s]}", n, strings.Join(single, ", ")))
	}
	return "[" + strings.Join(towers, ", ") + "]"
}
