package rowschema

import "slices"

// QueryColumn is the name of the group-by column of LibSVM and LibFFM. Its value is
// the number in a line's token such as "qid:7".
const QueryColumn = "qid"

// indicesPerColumn is the length of the index range that WithIndices gives each
// column: it is more than the cardinality of any feature, and leaves room for 2,047
// columns.
const indicesPerColumn = 1 << 52

// WithIndices returns the schema with an index range for each dense and sparse
// column where the format is LibSVM and no column has one, and with a field
// number for each where it is LibFFM and no column has one. In LibSVM the k-th
// of these columns gets the indices from k*2^52 on. Other schemas are returned
// as they are. Slices of the argument are not written to.
func WithIndices(s Schema) Schema {
	isFeature := func(c Column) bool { return c.Role == RoleDense || c.Role == RoleSparse }
	hasIndices := func(c Column) bool {
		return (s.Format == FormatLibSVM && c.HasIndexRange) || (s.Format == FormatLibFFM && c.HasFieldNumber)
	}
	if !s.Format.Indexed() || slices.ContainsFunc(s.Columns, hasIndices) {
		return s
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
			first := int64(k) * indicesPerColumn
			c.IndexRange, c.HasIndexRange = [2]int64{first, first + indicesPerColumn - 1}, true
			if c.Role == RoleDense {
				c.IndexRange[1] = first
			}
		}
		k++
	}
	return s
}
