package examples

import (
	"testing"

	"aibox/reader/rowschema"
)

// TestFilesShareTheirCells checks that a hundred thousand files with the same columns share the
// description of the columns in memory.
func TestFilesShareTheirCells(t *testing.T) {
	p, err := New(Options{Schema: rowschema.Schema{Format: rowschema.FormatCSV, Header: true, Columns: []rowschema.Column{
		{Name: "y", Role: rowschema.RoleLabel}, {Name: "u", Role: rowschema.RoleSparse},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewShared(p)
	of := func(uri string, header ...string) *CellMap {
		m, err := s.MapCells(uri, header)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := of("a.csv", "y", "u")
	if of("b.csv", "y", "u") != first {
		t.Error("files with the same header share nothing")
	}
	for _, m := range []*CellMap{of("a.csv", "u", "y"), of("a.csv", "y", "u", "v"), of("u=1/a.csv", "y"), of("u=2/a.csv", "y")} {
		if m == first {
			t.Errorf("the cells %q are taken for others", m.names)
		}
		first = m
	}
}
