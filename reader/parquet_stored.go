package reader

import (
	"context"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/parquetcolumn"
)

// Stored says how the values of a column are stored in Parquet: the type of the
// leaf, and whether the column is a list. A file written with the Stored values that
// StoredColumns returns for another file has the same column types. With the zero
// Stored, the column's role decides.
type Stored struct {
	leaf parquet.Type // nil: unknown
	list bool
}

// storedListSeparator separates the values of a list in a cell whose column has a
// Stored. No text in UTF-8 contains this byte.
const storedListSeparator = "\xff"

// StoredColumns says how the input, which is Parquet, stores the named columns. If
// its files differ, it returns a type that can hold the values of all. It reads only
// the footers. Its errors are of the same kinds as Open's.
func StoredColumns(ctx context.Context, o Options, names []string) ([]Stored, error) {
	o.BatchSize, o.Start = max(o.BatchSize, 1), nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := o.Schema.withDefaults()
	p := &plan{schema: s, pass: names, asked: true, labelColumn: s.labelColumn(), raw: true, keepUnlabelled: true}
	files, _, err := openFiles(ctx, &o, p)
	if err != nil {
		return nil, AsInputError(ctx, err)
	}
	return storedIn(files, len(names)), nil
}

// storedIn says how the files store their pass-through columns; the Stored values are
// zero if the files are not Parquet.
func storedIn(files []*inputFile, columns int) []Stored {
	all := make([]Stored, columns)
	for _, f := range files {
		for i := range all {
			if f.parquet != nil && f.parquet.leaves != nil && f.parquet.leaves.pass[i] != nil {
				leaf := f.parquet.leaves.pass[i]
				all[i] = all[i].and(Stored{leaf.Stored(), leaf.List})
			}
		}
	}
	return all
}

// IsList says whether the column is a list.
func (s *Stored) IsList() bool { return s.list }

// known says whether s is not the zero Stored.
func (s *Stored) known() bool { return s.leaf != nil || s.list }

// and returns a Stored that can hold the values of s and of t.
func (s Stored) and(t Stored) Stored {
	both := Stored{leaf: s.leaf, list: s.list || t.list}
	if both.leaf == nil {
		both.leaf = t.leaf
	} else if t.leaf != nil {
		both.leaf = parquetcolumn.Common(s.leaf, t.leaf)
	}
	return both
}

// writtenColumns are the columns of a Parquet file. Labels, weights and dense columns are numbers, sparse
// columns texts, or lists of texts where the column has separators, and ignored columns texts. A
// column with a Stored is as that says.
func writtenColumns(columns []Column) (list []parquetcolumn.Written) {
	for i := range columns {
		c := &columns[i]
		w := parquetcolumn.Written{Name: c.Name}
		switch {
		case c.Stored.known():
			w.Type, w.List, w.Separator = c.Stored.leaf, c.Stored.list, storedListSeparator
		case c.Role == RoleLabel || c.Role == RoleWeight || c.Role == RoleDense:
			w.Number = true
		case c.Role == RoleSparse:
			w.List, w.Separator = c.Separator != "" || c.WeightSeparator != "", c.Separator
		}
		list = append(list, w)
	}
	return list
}
