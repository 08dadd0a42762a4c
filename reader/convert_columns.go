package reader

import (
	"errors"
	"fmt"
	"slices"
)

// This file says which columns convert writes.

// uses says whether a column of the input is needed. Another one may be of a type
// that cannot be read.
func (o *ConvertOptions) uses(name string) bool {
	written := func(c OutputColumn) bool { return c.From == name || c.From == "" && c.Column.Name == name }
	return len(o.Columns) == 0 || slices.ContainsFunc(o.Columns, written) || o.SortBy == name ||
		slices.ContainsFunc(o.Joins, func(j Join) bool { return j.On == name })
}

// outputSchema finds the output's columns among the available ones. The known
// ones are those, and columns of the input that are not needed.
func (c *converter) outputSchema(known, available []string) (Schema, error) {
	o := c.options
	columns := o.Columns
	if len(columns) == 0 {
		for _, name := range available {
			columns = append(columns, OutputColumn{Column: c.inputColumn(name)})
		}
	}
	schema := Schema{Format: o.Format, Header: o.Header, Delimiter: o.Delimiter}
	var faults []error
	for _, column := range columns {
		from := column.From
		if from == "" {
			from = column.Column.Name
		}
		i := slices.Index(available, from)
		if i < 0 {
			faults = append(faults, fmt.Errorf("reader: convert: no column %q to write; there are %s", from, quoteAll(known)))
		}
		c.take = append(c.take, i)
		if i >= 0 {
			c.keepStored(&column.Column, i, from)
		}
		schema.Columns = append(schema.Columns, column.Column)
	}
	if o.Format == FormatCriteo {
		faults = append(faults, c.orderCriteo(&schema))
	}
	faults = append(faults, checkWeights(&schema))
	c.sortBy = slices.Index(available, o.SortBy)
	if o.SortBy != "" && c.sortBy < 0 {
		faults = append(faults, fmt.Errorf("reader: convert: no column %q to sort by; there are %s", o.SortBy, quoteAll(known)))
	}
	if err := errors.Join(faults...); err != nil {
		return schema, &OptionsError{err}
	}
	return schema, nil
}

// keepStored has the output's column be what the available column i is in
// Parquet, or have the separator of a list that becomes text.
func (c *converter) keepStored(column *Column, i int, name string) {
	if c.options.Format == FormatParquet {
		column.Stored = c.stored[i]
		return
	}
	if !c.stored[i].list {
		return
	}
	separator, _ := c.planOf(i).listSeparator(name)
	c.lists = append(c.lists, ListColumn{Column: column.Name, Separator: separator})
	if column.Role == RoleSparse {
		column.Separator = separator
	}
}

// planOf is the plan that the available column i was read by.
func (c *converter) planOf(i int) *plan {
	if i -= len(c.in.names); i < 0 {
		return c.in.rows.plan
	}
	for _, t := range c.joins {
		if i -= len(t.add); i < 0 {
			return t.plan
		}
	}
	panic("reader: a column of no table")
}

// inputColumn is what the schemas of the input and the joins say about a column,
// without its place in LibSVM or LibFFM unless the output has the same format.
func (c *converter) inputColumn(name string) Column {
	schemas := []Schema{c.in.rows.plan.schema}
	for i := range c.options.Joins {
		schemas = append(schemas, c.options.Joins[i].Table.Schema)
	}
	for _, s := range schemas {
		i := s.column(name)
		if i < 0 {
			continue
		}
		column := s.Columns[i]
		if s.Format.indexed() && column.Role == RoleSparse {
			column.Separator, column.WeightSeparator = column.listSeparators()
		}
		if s.Format != c.options.Format {
			column.HasIndexRange, column.HasFieldNumber = false, false
		}
		return column
	}
	if name == c.in.rows.plan.labelColumn {
		return Column{Name: name, Role: RoleLabel}
	}
	return Column{Name: name}
}
