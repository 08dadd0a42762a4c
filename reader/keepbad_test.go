package reader

import (
	"bytes"
	"fmt"
	"math"
	"testing"
)

// TestKeepBadRows reads inputs whose bad rows stay: each has its place among the good
// ones, no features, and the text of the columns passed through where it can be told.
func TestKeepBadRows(t *testing.T) {
	const rows = 3000
	var text bytes.Buffer
	for i := range rows {
		switch {
		case i%7 == 3:
			fmt.Fprintf(&text, "1,x,id%d,b\n", i) // a bad number
		case i%7 == 5:
			fmt.Fprintf(&text, "9,1,id%d,b\n", i) // a bad label
		default:
			fmt.Fprintf(&text, "%d,1,id%d,b|c\n", i%2, i)
		}
	}
	odd := bytes.ReplaceAll(text.Bytes(), []byte("1,x,"), []byte("1,x,,,"))
	for _, c := range []struct {
		name  string
		text  []byte
		cells bool // all of a bad row's cells are there
	}{
		{"data", text.Bytes(), true}, {"data.gz", text.Bytes(), true}, {"data.parquet", text.Bytes(), true}, {"cells", odd, false},
	} {
		path, schema := writeAdRows(t, c.name, c.text)
		for _, chunk := range []int64{500, 1 << 20} {
			o := testOptions(schema, path)
			o.KeepBadRows, o.KeepUnlabelled, o.PassThrough, o.GroupBy, o.ChunkBytes = true, true, []string{"c"}, "c", chunk
			passes, counts := mustRead(t, o)
			n := 0
			for _, p := range passes {
				for _, b := range p.Batches {
					for e := range b.N {
						bad := n%7 == 3 || n%7 == 5
						id := fmt.Sprintf("id%d", n)
						if n%7 == 3 && !c.cells {
							id = ""
						}
						features := b.Offsets[2*(e+1)] - b.Offsets[2*e]
						if b.Bad[e] != bad || b.Columns[0][e] != id || (features == 0) != bad || bad != math.IsNaN(float64(b.Labels[e])) {
							t.Fatalf("%s: row %d: bad %v, column %q, %d features, label %v", c.name, n, b.Bad[e], b.Columns[0][e], features, b.Labels[e])
						}
						n++
					}
				}
			}
			wantBad := int64((rows+3)/7 + (rows+1)/7)
			if n != rows || counts.Rows != rows || counts.BadRows != wantBad {
				t.Errorf("%s: %d rows, %+v", c.name, n, counts)
			}
		}
	}
}

// TestKeepTextOfInvalidRows checks that a cell that is not UTF-8 does not hide the other cells.
func TestKeepTextOfInvalidRows(t *testing.T) {
	path, schema := writeAdRows(t, "data", []byte("1,1,id0,b\n1,1,id1,\xff\n1,1,\xff,b\n"))
	o := testOptions(schema, path)
	o.KeepBadRows, o.PassThrough = true, []string{"c"}
	passes, counts := mustRead(t, o)
	if b := &passes[0].Batches[0]; fmt.Sprintf("%q %v", b.Columns[0], b.Bad) != `["id0" "id1" ""] [false true true]` || counts.BadRows != 2 {
		t.Errorf("%q, bad %v, %+v", b.Columns[0], b.Bad, counts)
	}
}

// TestKeepLostRows checks that a damaged page of Parquet counts as many rows as it had, each at its
// position among the others.
func TestKeepLostRows(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}}
	path := damagedRows(t)
	_, without := mustRead(t, testOptions(s, path))
	for _, chunk := range []int64{1, 1 << 20} {
		o := testOptions(s, path)
		o.KeepBadRows, o.PassThrough, o.ChunkBytes = true, []string{"A"}, chunk
		passes, counts := mustRead(t, o)
		n, lost := int64(0), int64(0)
		for _, p := range passes {
			for _, b := range p.Batches {
				for e := range b.N {
					want, empty := fmt.Sprint(n%100), b.Offsets[e] == b.Offsets[e+1]
					if b.Bad[e] {
						lost++
						want = ""
					}
					if first := without.Lost[0].Line - 1; b.Bad[e] != (n >= first && n < 200) || b.Columns[0][e] != want || empty != b.Bad[e] {
						t.Fatalf("row %d: bad %v, column %q; rows are lost from %d on", n, b.Bad[e], b.Columns[0][e], first)
					}
					n++
				}
			}
		}
		if l := counts.Lost[0]; n != 300 || lost != counts.LostRows || l != without.Lost[0] || counts.Examples != 300 || counts.BadRows != 0 || counts.Rows != without.Rows {
			t.Errorf("%d rows, of which %d are marked: %+v, want %+v", n, lost, counts, without)
		}
	}
}
