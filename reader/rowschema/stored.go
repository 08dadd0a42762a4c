package rowschema

import (
	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/parquetcolumn"
)

// Stored says how the values of a column are stored in Parquet: the type of the
// leaf, and whether the column is a list. A file written with the Stored values that
// reader.StoredColumns returns for another file has the same column types. With the zero
// Stored, the column's role decides.
type Stored struct {
	leaf parquet.Type // nil: unknown
	list bool
}

// StoredAs returns the Stored of a column whose leaf has that type.
func StoredAs(leaf parquet.Type, list bool) Stored { return Stored{leaf: leaf, list: list} }

// StoredSeparator separates the values of a list in a cell whose column has a
// Stored. No text in UTF-8 contains this byte.
const StoredSeparator = "\xff"

// ListSeparator separates the values of a list that is written as text where
// the schema names no separator.
const ListSeparator = "|"

// ListSeparators are the separators of the column's values where they are
// Written as one cell of text.
func (c *Column) ListSeparators() (list, weight string) {
	list, weight = c.Separator, c.WeightSeparator
	if list == "" {
		list = ListSeparator
	}
	if weight == "" {
		weight = ":"
	}
	return list, weight
}

// IsList says whether the column is a list.
func (s *Stored) IsList() bool { return s.list }

// known says whether s is not the zero Stored.
func (s *Stored) known() bool { return s.leaf != nil || s.list }

// And returns a Stored that can hold the values of s and of t.
func (s Stored) And(t Stored) Stored {
	both := Stored{leaf: s.leaf, list: s.list || t.list}
	if both.leaf == nil {
		both.leaf = t.leaf
	} else if t.leaf != nil {
		both.leaf = parquetcolumn.Common(s.leaf, t.leaf)
	}
	return both
}

// Written returns the column of a Parquet file to write. Labels, weights and dense columns are
// numbers, sparse columns texts, or lists of texts if the column has separators, and ignored
// columns texts. If the column has a Stored, that decides.
func (c *Column) Written() parquetcolumn.Written {
	w := parquetcolumn.Written{Name: c.Name}
	switch {
	case c.Stored.known():
		w.Type, w.List, w.Separator = c.Stored.leaf, c.Stored.list, StoredSeparator
	case c.Role == RoleLabel || c.Role == RoleWeight || c.Role == RoleDense:
		w.Number = true
	case c.Role == RoleSparse:
		w.List, w.Separator = c.Separator != "" || c.WeightSeparator != "", c.Separator
	}
	return w
}
