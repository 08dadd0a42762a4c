package examples

import (
	"fmt"
	"testing"

	"aibox/reader/internal/faults"
	"aibox/reader/rowschema"
)

// everyColumn has a column of each kind.
func everyColumn(format rowschema.Format) rowschema.Schema {
	columns := []rowschema.Column{
		{Name: "y", Role: rowschema.RoleLabel},
		{Name: "a", Role: rowschema.RoleDense, Indicator: true, IndexRange: [2]int64{1, 1}, HasIndexRange: true},
		{Name: "s", Role: rowschema.RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize}}, IndexRange: [2]int64{2, 2}, HasIndexRange: true},
		{Name: "b", Role: rowschema.RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{1}}}, IndexRange: [2]int64{3, 3}, HasIndexRange: true},
		{Name: "t", Role: rowschema.RoleSparse, Separator: "|", WeightSeparator: ":", IndexRange: [2]int64{4, 99}, HasIndexRange: true},
	}
	if !format.Indexed() {
		columns = append(columns, rowschema.Column{Name: "w", Role: rowschema.RoleWeight})
	}
	return rowschema.Schema{Format: format, Columns: columns}
}

// decodeAll decodes the lines as a reader does, and says which of them are bad.
func decodeAll(t *testing.T, w Options, lines []string) (l List, p *Plan, bad []int) {
	t.Helper()
	p, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	var m *CellMap
	if w.Schema.Format.Delimited() {
		if m, err = p.MapCells("", nil); err != nil {
			t.Fatal(err)
		}
	}
	d := p.NewDecoder(m)
	l = NewList()
	for i, line := range lines {
		if f := d.Decode([]byte(line), &l); f.Reason == faults.None {
			l.EndGood(p)
		} else {
			l.EndBad(p)
			bad = append(bad, i)
		}
	}
	return l, p, bad
}

// TestBadRowsLeaveNothing checks that a bad row, wherever its fault is, leaves nothing between the
// good ones or, if bad rows are kept, an example without features. A copy of an example must be
// equal to it.
func TestBadRowsLeaveNothing(t *testing.T) {
	for format, lines := range map[rowschema.Format][]string{
		rowschema.FormatCSV: {
			"1,2,3,0,x|y:2,3", "x,2,3,0,x,1", "0,,,,,", "1,x,3,0,x,1", "1,2,x,0,x,1", "1,2,3,x,x,1", "1,2,3,0,x|y:z,1", "1,2,3,0,x,-1", "1,2,3", "0,5,6,7,z,",
		},
		rowschema.FormatLibSVM: {
			"1 1:2 2:3 3:0 7:1 8:2", "x 1:2", "0", "1 1:2 2:3 7:x", "1 1:nan", "1 1:2 1:3", "0 1:5 2:6 3:7 9:1",
		},
	} {
		wish := Options{Schema: everyColumn(format), PassThrough: []string{"t", "y"}}
		good := []string{lines[0], lines[2], lines[len(lines)-1]}
		want, _, none := decodeAll(t, wish, good)
		got, p, bad := decodeAll(t, wish, lines)
		if len(none) != 0 || len(bad) != len(lines)-len(good) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: bad rows %v\n%v\nwithout them\n%v", format, bad, got, want)
		}
		wish.KeepBadRows = true
		kept, p2, _ := decodeAll(t, wish, lines)
		if kept.N != len(lines) || len(kept.Keys) != len(want.Keys) || len(kept.Offsets) != 1+kept.N*p2.Fields() ||
			len(kept.Dense) != kept.N*p2.DenseWidth() || len(kept.TextEnds) != 1+kept.N*p2.Passed() || len(kept.Stats) != kept.N {
			t.Errorf("%v, with bad rows kept: %v", format, kept)
		}
		copied := NewList()
		for e := range got.N {
			copied.CopyRow(p, &got, e)
		}
		copied.Stats = got.Stats // which only a scan uses, and a scan copies nothing
		if fmt.Sprint(copied) != fmt.Sprint(got) {
			t.Errorf("%v: the copy is\n%v, not\n%v", format, copied, got)
		}
	}
}
