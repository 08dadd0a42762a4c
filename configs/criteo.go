package configs

import (
	"fmt"
	"slices"
	"strings"

	"aibox/configs/internal/yamltree"
)

// criteoDense and criteoSparse are the columns of the Criteo format after the
// label: I1 to I13 and C1 to C26.
const (
	criteoDense  = 13
	criteoSparse = 26
)

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
// in l.Given accordingly.
func (l *loader) orderCriteo() {
	old := l.job.Data.Columns
	names := criteoNames()
	columns := make([]Column, 0, len(old))
	given := map[string]yamltree.Place{}
	for p, at := range l.Given {
		if !strings.HasPrefix(p, "data.columns[") {
			given[p] = at
		}
	}
	for to, name := range names {
		from := slices.IndexFunc(old, func(c Column) bool { return c.Name == name })
		columns = append(columns, old[from])
		prefix := fmt.Sprintf("data.columns[%d]", from)
		for p, at := range l.Given {
			if rest, ok := strings.CutPrefix(p, prefix); ok {
				given[fmt.Sprintf("data.columns[%d]%s", to, rest)] = at
			}
		}
	}
	l.job.Data.Columns, l.Given = columns, given
}
