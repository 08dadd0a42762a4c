package model

import (
	"fmt"
	"strconv"

	"gorgonia.org/gorgonia"
)

// Columns of the network have names, so that a later model with another field, dense feature or
// tower can copy the values that both models have: "user/embedding/3" is value 3 of field user's
// embedding, "user/linear" its linear weight, "dense:age" a dense feature, "item"·"user", with the
// quotation marks, the dot product of two vectors, "deep/0:17" the 18th result of a layer. A
// parameter's axis has the names of the columns that it belongs to.

// Axes returns, for each axis of a parameter, the names of its entries, or nil if they are
// identified by position.
func (m *Model) Axes(param string) [][]string { return m.params.axes[param] }

// RowNames returns the names of a row's RowDim values.
func (s Spec) RowNames() []string {
	names := make([]string, 0, s.RowDim())
	if s.linear() {
		names = append(names, "linear")
	}
	for i := range s.RowDim() - len(names) {
		names = append(names, fmt.Sprintf("embedding/%d", i))
	}
	return names
}

// DescribeRow describes the values of a row.
func (s Spec) DescribeRow() string {
	switch names := s.RowNames(); {
	case names[0] != "linear":
		return fmt.Sprintf("an embedding of %d", len(names))
	case len(names) == 1:
		return "a linear weight"
	default:
		return fmt.Sprintf("a linear weight and an embedding of %d", len(names)-1)
	}
}

// name names the columns of node.
func (b *builder) name(node *gorgonia.Node, names []string) *gorgonia.Node {
	if b.err == nil && node != nil {
		if b.names == nil {
			b.names = map[*gorgonia.Node][]string{}
		}
		b.names[node] = names
	}
	return node
}

// namesOf returns the names of the columns of node. Columns without a name are named by prefix and
// position.
func (b *builder) namesOf(node *gorgonia.Node, prefix string) []string {
	if names := b.names[node]; names != nil {
		return names
	}
	return positions(prefix, node.Shape()[1])
}

// positions returns n names made of prefix and a column's position.
func positions(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s:%d", prefix, i)
	}
	return names
}

// axes names the entries of a parameter, axis by axis; nil stands for positions.
func (b *builder) axes(param string, names ...[]string) {
	if b.err == nil {
		b.params.axes[param] = names
	}
}

// nameUnits names the units of a layer, so that a later model may have more or fewer of them.
func (b *builder) nameUnits(layer string, result *gorgonia.Node) {
	if b.err != nil {
		return
	}
	units := b.namesOf(result, layer)
	b.params.axes[layer+"/weight"][1] = units
	for _, param := range []string{"/bias", "/norm/gamma", "/norm/beta", "/norm/running_mean", "/norm/running_variance"} {
		b.axes(layer+param, units)
	}
}

// pooledNames returns the names of the columns of the pooled rows, (F*RowDim).
func (s Spec) pooledNames() []string {
	names := make([]string, 0, len(s.Fields)*s.RowDim())
	for _, f := range s.Fields {
		for _, value := range s.RowNames() {
			names = append(names, f+"/"+value)
		}
	}
	return names
}

func (s Spec) denseNames() []string {
	names := make([]string, len(s.Dense))
	for i, d := range s.Dense {
		names[i] = "dense:" + d
	}
	return names
}

// pairNames returns the names of the interaction's dot products, in their order. If there is a
// bottom network, its vector comes before the fields, under an empty name, which no field has. The
// name of a product does not depend on the order in which the job lists its fields, and no two
// products share a name.
func (s Spec) pairNames() []string {
	vectors := s.Fields
	if len(s.Dense) > 0 {
		vectors = append([]string{""}, vectors...)
	}
	quoted := make([]string, len(vectors))
	for i, v := range vectors {
		quoted[i] = strconv.Quote(v)
	}
	names := make([]string, 0, len(vectors)*(len(vectors)-1)/2)
	for i := range vectors {
		for j := range i {
			a, b := i, j
			if vectors[j] < vectors[i] {
				a, b = j, i
			}
			names = append(names, quoted[a]+"·"+quoted[b])
		}
	}
	return names
}
