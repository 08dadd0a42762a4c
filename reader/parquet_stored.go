package reader

import (
	"context"

	"aibox/reader/internal/examples"
	"aibox/reader/rowschema"
)

// StoredColumns says how the input, which is Parquet, stores the named columns. If
// its files differ, it returns a type that can hold the values of all. It reads only
// the footers. Its errors are of the same kinds as Open's.
func StoredColumns(ctx context.Context, o Options, names []string) ([]Stored, error) {
	o.BatchSize, o.Start = max(o.BatchSize, 1), nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, _, err := openFiles(ctx, &o, examples.Raw(o.Schema, names, o.KeepLists, false, true))
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
			if f.parquet != nil && f.parquet.leaves != nil && f.parquet.leaves.Passed(i) != nil {
				leaf := f.parquet.leaves.Passed(i)
				all[i] = all[i].And(rowschema.StoredAs(leaf.Stored(), leaf.List))
			}
		}
	}
	return all
}
