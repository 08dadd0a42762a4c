package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"aibox/internal/nearest"
)

func (l *loader) checkModel() {
	m := &l.job.Model
	if !l.Sound("model.kind") {
		return
	}
	if n := len(m.BottomLayers); m.Kind == "dlrm" && n > 0 && l.Sound("model.bottom_layers", "model.embedding_dim") && m.BottomLayers[n-1] != m.EmbeddingDim {
		l.FaultAt(fmt.Sprintf("model.bottom_layers[%d]", n-1), "the last bottom layer has width %d, but embedding_dim is %d: its output interacts with the embeddings, so both must be equal", m.BottomLayers[n-1], m.EmbeddingDim)
	}
	if l.columnsKnown() {
		l.checkPairs()
	}
	if m.Kind == "aibox" && l.columnsKnown() {
		l.checkTowers()
	}
}

// checkPairs checks that there are as many fields as the model needs.
func (l *loader) checkPairs() {
	m := &l.job.Model
	fields := l.job.SparseColumns()
	dense := l.columnNames(func(c *Column) bool { return c.Role == "dense" && !c.Bucketized() })
	switch {
	case len(fields) == 0:
		l.FaultAt("model.kind", "%s needs at least one sparse column, but none of data.columns is sparse or bucketized", m.Kind)
	case len(fields) == 1 && m.Kind == "fm":
		l.FaultAt("model.kind", "fm models pairs of sparse columns, but %s is the only one; lr is the model without pairs", nearest.Quote(fields[0].Name))
	case len(fields) == 1 && m.Kind == "dlrm" && len(dense) == 0:
		l.FaultAt("model.kind", "dlrm models pairs of columns, but %s is the only one", nearest.Quote(fields[0].Name))
	}
}

func (l *loader) checkTowers() {
	m := &l.job.Model
	meant := l.job.towerNames()
	_, given := l.Given["model.towers"]
	columns := map[string]bool{}
	for _, c := range l.job.DenseColumns() {
		columns[c.Name] = true
	}
	for i := range l.job.Data.Columns {
		c := &l.job.Data.Columns[i]
		if c.Group == "" || c.Bucketized() {
			continue
		}
		if columns[c.Group] {
			l.FaultAt(columnPath(i, "group"), "%s is also the name of a column, so a tower that names it could mean either", nearest.Quote(c.Group))
		}
		if !given && badTowerName(c.Group) {
			l.FaultAt(columnPath(i, "group"), "%s has a slash or a space, which the name of its tower may not have: give the group another name, or list model.towers", nearest.Quote(c.Group))
		}
	}
	names := map[string]bool{}
	used := map[string]bool{}
	for i := range m.Towers {
		t := &m.Towers[i]
		at := fmt.Sprintf("model.towers[%d].name", i)
		if names[t.Name] {
			l.FaultAt(at, "there is already a tower %s", nearest.Quote(t.Name))
		}
		if given && badTowerName(t.Name) {
			l.FaultAt(at, "%s: the name of a tower has at least one character, and neither slashes nor spaces", nearest.Quote(t.Name))
		}
		names[t.Name] = true
		in := map[string]bool{}
		for n, name := range t.Dense {
			at := fmt.Sprintf("model.towers[%d].dense[%d]", i, n)
			if meant[name] == nil {
				l.FaultAt(at, "%s", l.notDense(name, slices.Sorted(maps.Keys(meant))))
				continue
			}
			for _, c := range meant[name] {
				if in[c] {
					l.FaultAt(at, "column %s is in this tower already", nearest.Quote(c))
				}
				in[c], used[c] = true, true
			}
		}
	}
	if !l.Sound("model.towers") {
		return
	}
	var left []string
	for _, c := range l.job.DenseColumns() {
		if !used[c.Name] {
			left = append(left, c.Name)
		}
	}
	if len(left) > 0 {
		l.FaultKey("model.towers", "no tower takes the dense columns %s: add them to one, or give them the role ignore", strings.Join(left, ", "))
	}
}

// badTowerName reports whether a tower's name is invalid. It becomes part of parameter names, whose
// parts are separated by slashes.
func badTowerName(name string) bool { return name == "" || strings.ContainsAny(name, "/ \t\n") }

// notDense says why a tower cannot take name.
func (l *loader) notDense(name string, candidates []string) string {
	for _, c := range l.job.Data.Columns {
		if c.Name != name {
			continue
		}
		if c.Bucketized() {
			return fmt.Sprintf("column %s is bucketized, so it is a sparse feature: every tower sees its embedding", nearest.Quote(name))
		}
		return fmt.Sprintf("column %s has the role %s: towers take dense columns, and see every embedding anyway", nearest.Quote(name), c.Role)
	}
	return fmt.Sprintf("%s is neither a dense column nor a group of them%s", nearest.Quote(name), nearest.Suggest(name, candidates))
}
