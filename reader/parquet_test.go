package reader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/rowschema"
)

// The files in testdata were written by pyarrow 22: columns y (bool), nothing (of null type), half
// (float16), small, large and wide (decimals of 5, 15 and 38 digits), shorts (lists of decimals),
// pair (a struct). The decimals of types_int.parquet are stored as integers, the others as bytes.
// uuids_and_twice.parquet is from pyarrow 26: columns y, twice, twice, id (UUID) and ids (lists of
// UUIDs).

func TestParquetTypesAsFeatures(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "half", Role: RoleDense}, {Name: "small", Role: RoleDense, Missing: -1},
		{Name: "nothing", Role: RoleDense, Missing: 7}, {Name: "wide", Role: RoleSparse}, {Name: "pair", Role: RoleIgnore},
	}}
	passes, counts := mustRead(t, testOptions(s, filepath.Join("testdata", "types_bytes.parquet")))
	if counts.Examples != 3 {
		t.Fatalf("%+v", counts)
	}
	b := &passes[0].Batches[0]
	if got, want := fmt.Sprint(b.Dense), "[1.5 -0.05 7 0 -1 7 -5.9604645e-08 123.4 7]"; got != want {
		t.Errorf("dense %v, want %v", got, want)
	}
	if got := passes[0].Keys; len(got) != 2 || got[0] != Key("wide", []byte("-12345678901234567890123456789.12")) {
		t.Errorf("keys %v", got)
	}
}

// TestUUIDsAsFeatures checks that a UUID is the same feature as its text in a file of another
// format.
func TestUUIDsAsFeatures(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "id", Role: RoleSparse}, {Name: "ids", Role: RoleSparse, Space: "id"}}}
	passes, _ := mustRead(t, testOptions(s, filepath.Join("testdata", "uuids_and_twice.parquet")))
	want := []uint64{Key("id", []byte("00112233-4455-6677-8899-aabbccddeeff")), Key("id", []byte("ffffffff-ffff-ffff-ffff-ffffffffffff"))}
	slices.Sort(want)
	if got := passes[0].Keys; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

// TestLabelsInWords checks that a label that is text in Parquet is read as in CSV.
func TestLabelsInWords(t *testing.T) {
	type row struct {
		Y string `parquet:"y"`
		C string `parquet:"c"`
	}
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "c", Role: RoleSparse}}}
	path := writeParquet(t, t.TempDir(), "data", []row{{"True", "a"}, {"FALSE ", "b"}, {"1.0", "c"}, {" 0", "d"}})
	passes, _ := mustRead(t, testOptions(s, path))
	if got, want := fmt.Sprint(passes[0].Batches[0].Labels), "[1 0 1 0]"; got != want {
		t.Errorf("labels %v, want %v", got, want)
	}
}

// TestColumnsOfOneName checks that several columns with the same name are an error if that name is
// used, since it is unknown which one is meant.
func TestColumnsOfOneName(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "twice", Role: RoleSparse}}}
	o := testOptions(s, filepath.Join("testdata", "uuids_and_twice.parquet"))
	if _, _, err := readAll(o); err == nil || !strings.Contains(err.Error(), `uuids_and_twice.parquet: there are 2 columns "twice"`) {
		t.Errorf("the error is %v, want one about the columns of one name", err)
	}
	o.Schema.Columns[1].Name = "id"
	mustRead(t, o)
}

// TestDifferencesAsFeatures checks that 32-bit integers that DuckDB writes as differences in data
// pages are read correctly, in columns of every role. The test of parquetfile describes the file.
func TestDifferencesAsFeatures(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "u", Role: RoleDense}, {Name: "i", Role: RoleSparse}, {Name: "list", Role: RoleSparse},
	}}
	passes, counts := mustRead(t, testOptions(s, filepath.Join("..", "internal", "parquetfile", "testdata", "delta_duckdb.parquet")))
	if counts.Examples != 300 || counts.BadRows != 0 {
		t.Fatalf("%+v", counts)
	}
	u := func(i int) uint32 { return uint32(i * 2654435761) }
	text := func(x any) []byte { return fmt.Append(nil, x) }
	var dense []float32
	keys := map[uint64]bool{}
	for i := 1; i <= 300; i++ {
		dense = append(dense, float32(float64(u(i))))
		keys[Key("i", text(int64(u(i))-1<<31))] = true
		if i%3 > 0 {
			keys[Key("list", text(u(i)))] = true
		}
		if i%3 == 2 {
			keys[Key("list", text(u(i+1)))] = true
		}
	}
	var got []float32
	for _, p := range passes {
		for i := range p.Batches {
			got = append(got, p.Batches[i].Dense...)
		}
		for _, key := range p.Keys {
			delete(keys, key)
		}
	}
	if !slices.Equal(got, dense) || len(keys) > 0 {
		t.Errorf("%d keys are missing; %d dense values begin with %v", len(keys), len(got), got[:min(len(got), 10)])
	}
}

// TestStatisticsOfLongTexts reads a file of whose texts only the greatest is too long for
// statistics. The test of parquetfile describes the file.
func TestStatisticsOfLongTexts(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "n", Role: RoleLabel}, {Name: "pages", Role: RoleSparse}, {Name: "whole", Role: RoleSparse}}}
	s.Label = LabelRule{Column: "n", Op: ">=", Value: 3}
	passes, counts := mustRead(t, testOptions(s, filepath.Join("..", "internal", "parquetfile", "testdata", "statistics.parquet")))
	keys := map[uint64]bool{}
	for _, p := range passes {
		for _, key := range p.Keys {
			keys[key] = true
		}
	}
	long := []byte(strings.Repeat("z", 5000))
	if counts.Examples != 6 || counts.Positives != 3 || len(keys) != 7 || !keys[Key("pages", long)] || !keys[Key("whole", []byte("x"))] {
		t.Errorf("%+v, %d keys", counts, len(keys))
	}
}

// damagedRows are three row groups of 100 rows, the second of which has a damaged
// page of column B from row 50 on.
func damagedRows(t *testing.T) string {
	t.Helper()
	type row struct{ Y, A, B int64 }
	var data bytes.Buffer
	w := parquet.NewGenericWriter[row](&data, parquet.PageBufferSize(400), parquet.Compression(&parquet.Uncompressed))
	for group := range 3 {
		for i := range 100 {
			if _, err := w.Write([]row{{int64(i % 2), int64(i), 0x5a5a5a0000 + int64(100*group+i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := data.Bytes()
	at := bytes.Index(file, []byte{150, 0, 0x5a, 0x5a, 0x5a})
	if at < 0 {
		t.Fatal("row 150 is not there")
	}
	file[at] ^= 1
	return write(t, t.TempDir(), "damaged.parquet", file)
}

func TestDamagedPageLosesTheRestOfItsRowGroup(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "A", Role: RoleSparse}, {Name: "B", Role: RoleSparse}}}
	o := testOptions(s, damagedRows(t))
	var first string
	for _, threads := range []int{1, 4} {
		o.Threads = threads
		passes, counts := mustRead(t, o)
		if counts.BadRows != 0 || counts.Examples < 200 || counts.Examples >= 300 || len(counts.Lost) != 1 {
			t.Fatalf("%+v", counts)
		}
		if l := counts.Lost[0]; l.Line != counts.Examples-100+1 || l.Offset != -1 || !strings.Contains(l.Cause, `column "B"`) {
			t.Errorf("%+v with %d examples", l, counts.Examples)
		}
		if got := dump(passes); first == "" {
			first = got
		} else if got != first {
			t.Error("the examples depend on the number of threads")
		}
	}
	o.MaxBadRows = 0
	var lost *LostDataError
	if _, _, err := readAll(o); !errors.As(err, &lost) {
		t.Errorf("%v, want a LostDataError", err)
	}
	o.Schema.Columns = s.Columns[:2] // without the damaged column
	if passes, _ := mustRead(t, o); len(described(passes)) != 300 {
		t.Errorf("%d examples", len(described(passes)))
	}
}

// signed returns a Parquet file whose footer has a signature, as that of a file with encrypted columns.
func signed(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(data) - 8
	footer := binary.LittleEndian.Uint32(data[end:])
	out := append(slices.Clone(data[:end]), make([]byte, 28)...)
	return append(binary.LittleEndian.AppendUint32(out, footer+28), "PAR1"...)
}

// TestParquetListsAsGroups checks that a list may be a feature, but not the column of groups.
func TestParquetListsAsGroups(t *testing.T) {
	o := testOptions(Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "shorts", Role: RoleSparse}}}, "testdata/types_bytes.parquet")
	o.GroupBy = "shorts"
	if _, _, err := readAll(o); err == nil || !strings.Contains(err.Error(), "groups") {
		t.Errorf("%v", err)
	}
}

func TestNotAParquetFile(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "half", Role: RoleDense}}}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"short":     {[]byte("hello\n"), "not a Parquet file"},
		"text":      {[]byte(strings.Repeat("hello\n", 99)), "not a Parquet file"},
		"encrypted": {[]byte("PARE" + strings.Repeat(".", 20) + "PARE"), "encrypted"},
		"signed":    {signed(t, "testdata/types_int.parquet"), "encrypted"},
	} {
		_, _, err := readAll(testOptions(s, write(t, t.TempDir(), "a.parquet", c.data)))
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an InputError with %q", name, err, c.want)
		}
		if _, err = ColumnNames(t.Context(), testOptions(s, write(t, t.TempDir(), "a.parquet", c.data))); !errors.As(err, &input) {
			t.Errorf("%s: names: %v", name, err)
		}
	}
}

// TestEmptyTextIsMissing checks that an empty text in a column of numbers is a missing value in
// Parquet, as it is in CSV.
func TestEmptyTextIsMissing(t *testing.T) {
	type row struct {
		Y string `parquet:"y"`
		A string `parquet:"a"`
		B string `parquet:"b"`
		C string `parquet:"c"`
	}
	rows := []row{{"1", "", "2", "9"}, {"0", "3", " ", ""}, {"1", "4", "6", " \t"}, {"0", "x", "", ""}, {"0", "", "-", ""}, {"1", "", "", "y"}}
	var csv strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&csv, "%s,%s,%s,%s\n", r.Y, r.A, r.B, r.C)
	}
	columns := func() []Column {
		return []Column{
			{Name: "y", Role: RoleLabel}, {Name: "a", Role: RoleDense, Missing: 7},
			{Name: "b", Role: RoleDense, Indicator: true, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize}}},
			{Name: "c", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{6}}}},
		}
	}
	var got []string
	for _, o := range []Options{
		testOptions(Schema{Format: FormatCSV, Columns: columns()}, write(t, t.TempDir(), "data", []byte(csv.String()))),
		testOptions(Schema{Format: FormatParquet, Columns: columns()}, writeParquet(t, t.TempDir(), "data", rows)),
	} {
		s, err := Scan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(&o.Schema); err != nil {
			t.Fatal(err)
		}
		passes, counts := mustRead(t, o)
		got = append(got, fmt.Sprintf("%+v, %d bad rows\n%s", s.Columns, counts.BadRows, strings.Join(described(passes), "\n")))
	}
	if !strings.Contains(got[0], "3 bad rows\n1 [7 -1 0] [ ") {
		t.Errorf("csv: %s", got[0])
	}
	if got[1] != got[0] {
		t.Errorf("parquet: %s\ncsv: %s", got[1], got[0])
	}
}
