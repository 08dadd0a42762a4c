package reader

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/rowschema"
)

// TestIndicators checks that in every format a dense column with an indicator gives a second
// feature, which is 1 if the cell is missing, beside columns without one.
func TestIndicators(t *testing.T) {
	columns := []Column{
		{Name: "y", Role: RoleLabel},
		{Name: "a", Role: RoleDense, Indicator: true, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize, Mean: 1, Std: 2, HasMeanStd: true}}},
		{Name: "b", Role: RoleDense, Missing: 9},
		{Name: "c", Role: RoleDense, Indicator: true, Missing: 5},
		{Name: "d", Role: RoleDense, Indicator: true, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{1}}}},
	}
	// Rows 1 and 3 of these are bad.
	csv := "1,3,4,6,0\nx,,,,\n0,,,,\n0,1,2,z,\n1,1,, ,2\n"
	want := []string{"1 [1 4 6 0 0] [ ", "0 [0 9 5 1 1] [ ", "1 [0 9 5 0 1] [ "}

	indexed := slices.Clone(columns[1:])
	for i := range indexed {
		n := int64(i + 1)
		indexed[i].IndexRange, indexed[i].HasIndexRange = [2]int64{n, n}, true
		indexed[i].FieldNumber, indexed[i].HasFieldNumber = i, true
	}
	type row struct {
		Y int64    `parquet:"y"`
		A *float64 `parquet:"a,optional"`
		B *float32 `parquet:"b,optional"`
		C *string  `parquet:"c,optional"` // not read in bulk
		D *int64   `parquet:"d,optional"`
	}
	a, b, c, d := func(x float64) *float64 { return &x }, func(x float32) *float32 { return &x }, func(x string) *string { return &x }, func(x int64) *int64 { return &x }
	var stored bytes.Buffer
	if err := parquet.Write(&stored, []row{{1, a(3), b(4), c("6"), d(0)}, {5, nil, nil, nil, nil}, {0, nil, nil, nil, nil}, {0, a(1), b(2), c("z"), nil}, {1, a(1), nil, nil, d(2)}}); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		schema Schema
		data   string
	}{
		"csv":     {Schema{Format: FormatCSV, Columns: columns}, csv},
		"tsv":     {Schema{Format: FormatTSV, Columns: columns}, strings.NewReplacer(",\n", "\t\\N\n", ",,", "\t\\N\t", ",", "\t").Replace(csv)},
		"libsvm":  {Schema{Format: FormatLibSVM, Columns: indexed}, "1 1:3 2:4 3:6 4:0\nx\n0\n0 1:1 2:2 3:z\n1 1:1 4:2\n"},
		"libffm":  {Schema{Format: FormatLibFFM, Columns: indexed}, "1 0:1:3 1:1:4 2:1:6 3:1:0\nx\n0\n0 0:1:1 2:1:z\n1 0:1:1 3:1:2\n"},
		"parquet": {Schema{Format: FormatParquet, Columns: columns}, stored.String()},
	} {
		if got := of.schema.DenseNames(); !slices.Equal(got, []string{"a", "b", "c", "a.missing", "c.missing"}) {
			t.Fatalf("%s: %q", name, got)
		}
		for _, shuffled := range []bool{false, true} {
			o := testOptions(of.schema, write(t, t.TempDir(), "data", []byte(of.data)))
			if shuffled {
				o.ShuffleBuffer, o.ChunkBytes = 2, 8
			}
			passes, counts := mustRead(t, o)
			got := described(passes)
			slices.Sort(got)
			for i, line := range slices.Sorted(slices.Values(want)) {
				if len(got) != len(want) || !strings.HasPrefix(got[i], line) || counts.BadRows != 2 {
					t.Errorf("%s: %d bad rows and\n%s\nwant\n%s", name, counts.BadRows, strings.Join(got, "\n"), strings.Join(want, "\n"))
					break
				}
			}
		}
		o := testOptions(of.schema, write(t, t.TempDir(), "data", []byte(of.data)))
		o.KeepBadRows, o.KeepUnlabelled = true, true
		passes, _ := mustRead(t, o)
		if got := described(passes); len(got) != 5 || !strings.HasPrefix(got[1], "NaN [0 9 5 1 1]") || !strings.HasPrefix(got[4], want[2]) {
			t.Errorf("%s with bad rows:\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// TestIndicatorOfStatistics checks that missing cells do not count in means and deviations.
func TestIndicatorOfStatistics(t *testing.T) {
	schema := Schema{Format: FormatCSV, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "a", Role: RoleDense, Indicator: true, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize}}}, {Name: "c", Role: RoleSparse},
	}}
	o := testOptions(schema, write(t, t.TempDir(), "data", []byte("1,2,\n0,,\n1,6,x\n")))
	s, err := Scan(t.Context(), o)
	if err != nil || s.Columns[0].Mean != 4 || s.Columns[0].Std != 2 || s.Columns[0].Count != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Apply(&o.Schema); err != nil {
		t.Fatal(err)
	}
	passes, _ := mustRead(t, o)
	for i, want := range []string{"1 [-1 0]", "0 [0 1]", "1 [1 0]"} {
		if got := described(passes)[i]; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
