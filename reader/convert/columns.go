package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aibox/reader"
)

// This file says which columns convert writes.

// uses says whether a column of the input is needed. A column that is not needed may
// have a type that cannot be read.
func (o *Options) uses(name string) bool { return len(o.Columns) == 0 || o.asksFor(name) }

// asksFor says whether the options name a column of the input.
func (o *Options) asksFor(name string) bool {
	if name == "" {
		return false
	}
	if o.asked == nil {
		o.asked = map[string]bool{o.SortBy: true}
		for _, c := range o.Columns {
			o.asked[cmp.Or(c.From, c.Column.Name)] = true
		}
		for _, j := range o.Joins {
			o.asked[j.On] = true
		}
	}
	return o.asked[name]
}

// haveNames checks that each column of the input has a unique name, without which it cannot be
// written.
func haveNames(columns []string) error {
	seen := make(map[string]bool, len(columns))
	for i, name := range columns {
		if name == "" {
			return optionsErrorf("convert: column %d of the input has no name; choose columns with --columns", i+1)
		}
		if seen[name] {
			return optionsErrorf("convert: the input has two columns %q; choose the other columns with --columns", name)
		}
		seen[name] = true
	}
	return nil
}

// inGroups lists the columns that the options name as GROUP.COLUMN, where GROUP, a Parquet group,
// is among all.
func (o *Options) inGroups(all []string) (names []string) {
	add := func(name string) {
		group, _, _ := strings.Cut(name, ".")
		if group != name && slices.Contains(all, group) && !slices.Contains(all, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if o.From.Schema.Format != reader.FormatParquet {
		return nil
	}
	for _, c := range o.Columns {
		add(cmp.Or(c.From, c.Column.Name))
	}
	for _, j := range o.Joins {
		add(j.On)
	}
	add(o.SortBy)
	return names
}

// outputSchema finds the output's columns among the available ones. known also has the
// columns of the input that are not needed, for the error messages.
func (c *converter) outputSchema(known, available []string) (reader.Schema, error) {
	o := c.options
	columns := o.Columns
	if len(columns) == 0 {
		described := c.described()
		for _, name := range available {
			if slices.Contains(c.given, name) {
				continue // it was asked for to sort or to join by
			}
			columns = append(columns, c.inputColumn(name, described))
		}
	}
	index := make(map[string]int, len(available))
	for i, name := range slices.Backward(available) { // the first one's, where a name occurs twice
		index[name] = i
	}
	indexOf := func(name string) int {
		if i, ok := index[name]; ok {
			return i
		}
		return -1
	}
	written := make(map[string]bool, len(columns))
	schema := reader.Schema{Format: o.Format, Header: o.Header, Delimiter: o.Delimiter}
	var faults []error
	for _, column := range columns {
		from := column.From
		if from == "" {
			from = column.Column.Name
		}
		i := indexOf(from)
		if i < 0 {
			faults = append(faults, fmt.Errorf("convert: there is no column %q to write; the columns are %s", from, quoteAll(known)))
		}
		if written[column.Column.Name] {
			faults = append(faults, fmt.Errorf("convert: column %q would be written twice; name it once, or give it another name", column.Column.Name))
		}
		written[column.Column.Name] = true
		c.take = append(c.take, i)
		if i >= 0 {
			c.keepStored(&column.Column, i, from)
		}
		schema.Columns = append(schema.Columns, column.Column)
	}
	if o.Format == reader.FormatCriteo {
		faults = append(faults, c.orderCriteo(&schema))
	}
	faults = append(faults, checkIndexed(&schema))
	c.label = -1
	if i := indexOf(o.From.Schema.LabelColumn()); slices.Contains(c.take, i) {
		c.label = i
	}
	c.sortBy = indexOf(o.SortBy)
	if o.SortBy != "" && c.sortBy < 0 {
		faults = append(faults, fmt.Errorf("convert: there is no column %q to sort by; the columns are %s", o.SortBy, quoteAll(known)))
	}
	if err := errors.Join(faults...); err != nil {
		return schema, &reader.OptionsError{Err: err}
	}
	return schema, nil
}

// keepStored gives the output's column the Parquet type of the available column i, or,
// if a list becomes text, the separator of its values.
func (c *converter) keepStored(column *reader.Column, i int, name string) {
	if c.options.Format == reader.FormatParquet {
		column.Stored = c.stored[i]
		return
	}
	if !c.stored[i].IsList() {
		return
	}
	separator := c.separatorOf(i, name)
	c.lists = append(c.lists, ListColumn{Column: column.Name, Separator: separator})
	if column.Role == reader.RoleSparse {
		column.Separator = separator
	}
}

// separatorOf is the text between the values of a list in the available column i.
func (c *converter) separatorOf(i int, name string) string {
	in := c.in.Columns()
	if i < len(in) {
		return c.in.ListSeparator(name)
	}
	i -= len(in)
	for _, t := range c.joins {
		if i < len(t.add) {
			return t.separators[i]
		}
		i -= len(t.add)
	}
	panic("convert: a column of no table")
}

// schemaColumns are the columns of a schema, found by name.
type schemaColumns struct {
	reader.Schema
	index map[string]int
}

// described are the columns that the schemas of the input and the joins describe.
func (c *converter) described() []schemaColumns {
	in := c.in.Schema()
	all := []schemaColumns{{in, in.ColumnIndices()}}
	for i := range c.options.Joins {
		s := c.options.Joins[i].Table.Schema
		all = append(all, schemaColumns{s, s.ColumnIndices()})
	}
	return all
}

// inputColumn is the output's column for a column of the input or of a join as its schema describes it,
// without its place in LibSVM or LibFFM unless the output has the same format.
func (c *converter) inputColumn(name string, described []schemaColumns) OutputColumn {
	for _, s := range described {
		i, found := s.index[name]
		if !found {
			continue
		}
		column := s.Columns[i]
		if s.Format.Indexed() && column.Role == reader.RoleSparse {
			column.Separator, column.WeightSeparator = column.ListSeparators()
		}
		if s.Format != c.options.Format {
			column.HasIndexRange, column.HasFieldNumber = false, false
		}
		return OutputColumn{Column: column}
	}
	if name == c.in.LabelColumn() {
		return OutputColumn{Column: reader.Column{Name: name, Role: reader.RoleLabel}}
	}
	return OutputColumn{Column: reader.Column{Name: name}}
}

// quoteAll lists names for an error.
func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}

func optionsErrorf(format string, args ...any) error {
	return &reader.OptionsError{Err: fmt.Errorf(format, args...)}
}
