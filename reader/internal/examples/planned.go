package examples

import "slices"

// planned has a T for each of a plan's columns: the cell of a line, or the leaf or the open column
// of a Parquet file, that holds the column.
type planned[T any] struct {
	label, weight, group       T
	dense, fields, stats, pass []T
}

// all lists the elements.
func (c *planned[T]) all() []T {
	return slices.Concat([]T{c.label, c.weight, c.group}, c.dense, c.fields, c.stats, c.pass)
}

// mapped returns the results of f for each element, in order.
func mapped[T, U any](c *planned[T], f func(T) U) (m planned[U]) {
	each := func(list []T) (made []U) {
		for _, x := range list {
			made = append(made, f(x))
		}
		return made
	}
	m.label, m.weight, m.group = f(c.label), f(c.weight), f(c.group)
	m.dense, m.fields, m.stats, m.pass = each(c.dense), each(c.fields), each(c.stats), each(c.pass)
	return m
}

// wanted is a column that a plan wants of a file.
type wanted struct {
	name     string // "": none
	list     bool   // it may be a list
	optional bool   // the file may lack it
}

// wanted returns the columns that the plan wants.
func (p *Plan) wanted() (w planned[wanted]) {
	w.label = wanted{name: p.LabelColumn, optional: p.keepUnlabelled}
	w.weight.name, w.group.name = p.weightColumn, p.groupColumn
	for i := range p.dense {
		w.dense = append(w.dense, wanted{name: p.dense[i].name})
	}
	for i := range p.fields {
		w.fields = append(w.fields, wanted{name: p.fields[i].name, list: p.fields[i].steps == nil})
	}
	for i := range p.Stats {
		w.stats = append(w.stats, wanted{name: p.Stats[i].Name})
	}
	for _, name := range p.pass {
		// A label column that may be absent may also be absent from the output.
		w.pass = append(w.pass, wanted{name: name, list: true, optional: p.keepUnlabelled && name == p.LabelColumn})
	}
	return w
}
