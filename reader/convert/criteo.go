package convert

import (
	"errors"
	"fmt"
	"slices"

	"aibox/reader"
	"aibox/reader/rowschema"
)

// orderCriteo puts the output's columns into the order of the Criteo format, whose files
// do not name them: label, I1 to I13, C1 to C26. It fails if one of them is missing or
// if there are others.
func (c *converter) orderCriteo(s *reader.Schema) error {
	want := rowschema.CriteoSchema().Columns
	columns, take := make([]reader.Column, 0, len(want)), make([]int, 0, len(want))
	var missing, excess []string
	for i := range want {
		if at := s.ColumnIndex(want[i].Name); at < 0 {
			missing = append(missing, want[i].Name)
		} else {
			columns, take = append(columns, s.Columns[at]), append(take, c.take[at])
		}
	}
	for i := range s.Columns {
		if name := s.Columns[i].Name; !slices.ContainsFunc(want, func(c reader.Column) bool { return c.Name == name }) {
			excess = append(excess, name)
		}
	}
	var faults []error
	if len(missing) > 0 {
		faults = append(faults, fmt.Errorf("convert: criteo needs the columns %s: use --columns to say which columns they are (I1=price)", quoteAll(missing)))
	}
	if len(excess) > 0 {
		faults = append(faults, fmt.Errorf("convert: criteo has no columns %s: use --columns to leave them out", quoteAll(excess)))
	}
	if len(s.Columns) != len(want) && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("convert: the criteo format has %d columns, but there are %d to write", len(want), len(s.Columns)))
	}
	s.Columns, c.take = columns, take
	return errors.Join(faults...)
}

// checkIndexed refuses, for LibSVM and LibFFM, example weights, which these formats cannot hold,
// and schemas without a feature, whose lines would consist of labels only.
func checkIndexed(s *reader.Schema) error {
	if !s.Format.Indexed() {
		return nil
	}
	if i := slices.IndexFunc(s.Columns, func(c reader.Column) bool { return c.Role == reader.RoleWeight }); i >= 0 {
		return fmt.Errorf("convert: column %q is the weight of an example, which %v cannot hold: use --columns to leave it out", s.Columns[i].Name, s.Format)
	}
	if !slices.ContainsFunc(s.Columns, func(c reader.Column) bool { return c.Role == reader.RoleDense || c.Role == reader.RoleSparse }) {
		return fmt.Errorf("convert: %v holds a label and features, and none of the columns is known to be a feature: name a job file (--job) whose data.columns say which column has the role label, and which are dense or sparse", s.Format)
	}
	return nil
}
