package rowschema

import (
	"fmt"
	"slices"
)

// QueryColumn is the name of the group-by column of LibSVM and LibFFM. Its value is
// the number in a line's token such as "qid:7".
const QueryColumn = "qid"

// indicesPerColumn is the length of the index range that WithIndices gives each column, more than
// the cardinality of any feature. mostIndexed is the number of columns for which the indices
// suffice.
const (
	indicesPerColumn = 1 << 52
	mostIndexed      = 1 << 63 / indicesPerColumn
)

// WithIndices adds an index range to each dense and sparse column of a LibSVM schema without index
// ranges, and a field number to each of a LibFFM schema without field numbers. In LibSVM the k-th
// of these columns gets the indices from k*2^52 on. Other schemas are returned unchanged. It is an
// error if LibSVM does not have enough indices. Slices of the argument are not written to.
func WithIndices(s Schema) (Schema, error) {
	isFeature := func(c Column) bool { return c.Role == RoleDense || c.Role == RoleSparse }
	hasIndices := func(c Column) bool {
		return (s.Format == FormatLibSVM && c.HasIndexRange) || (s.Format == FormatLibFFM && c.HasFieldNumber)
	}
	if !s.Format.Indexed() || slices.ContainsFunc(s.Columns, hasIndices) {
		return s, nil
	}
	s.Columns = slices.Clone(s.Columns)
	k := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		if !isFeature(*c) {
			continue
		}
		if s.Format == FormatLibFFM {
			c.FieldNumber, c.HasFieldNumber = k, true
		} else {
			if k == mostIndexed {
				return s, fmt.Errorf("LibSVM has indices for %d dense and sparse columns, and there are more; LibFFM has field numbers for all", mostIndexed)
			}
			first := int64(k) * indicesPerColumn
			c.IndexRange, c.HasIndexRange = [2]int64{first, first + indicesPerColumn - 1}, true
			if c.Role == RoleDense {
				c.IndexRange[1] = first
			}
		}
		k++
	}
	return s, nil
}
