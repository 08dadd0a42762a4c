package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// convertFile converts one file without a job and returns the summary.
func convertFile(from reader.Schema, input string, to reader.Format, output string, columns ...OutputColumn) (*Summary, error) {
	o := Options{From: testOptions(from, input), Format: to, To: []string{output}, Columns: columns}
	o.Header = to == reader.FormatCSV || to == reader.FormatTSV
	o.From.MaxBadRows = 0
	return Run(context.Background(), o)
}

func mustConvertFile(t *testing.T, from reader.Schema, input string, to reader.Format, output string, columns ...OutputColumn) *Summary {
	t.Helper()
	s, err := convertFile(from, input, to, output, columns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeParquet writes a file with the library and a struct per row.
func writeParquet[T any](t *testing.T, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var data bytes.Buffer
	w := parquet.NewGenericWriter[T](&data, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, t.TempDir(), "in.parquet", data.Bytes())
}

func parquetColumns(t *testing.T, path string) (columns []string) {
	t.Helper()
	data := []byte(content(t, path))
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Root().Columns() {
		leaf := c
		for !leaf.Leaf() {
			leaf = leaf.Columns()[0]
		}
		kind := leaf.Type().String()
		if leaf.MaxRepetitionLevel() > 0 {
			kind = "list of " + kind
		}
		columns = append(columns, c.Name()+" "+kind)
	}
	return columns
}

// TestCriteoThroughParquet checks that the order of columns is kept in Parquet, where they have
// names. In Criteo they have none, so only their order says which they are.
func TestCriteoThroughParquet(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for row := range 50 {
		cells := []string{fmt.Sprint(row % 2)}
		for i := 1; i <= 13; i++ {
			cells = append(cells, fmt.Sprint(1000003*i+row))
		}
		for i := 1; i <= 26; i++ {
			cells = append(cells, fmt.Sprintf("c%d_%d", i, row))
		}
		text.WriteString(strings.Join(cells, "\t") + "\n")
	}
	in, middle, out := write(t, dir, "1.tsv", []byte(text.String())), filepath.Join(dir, "2.parquet"), filepath.Join(dir, "3.tsv")
	mustConvertFile(t, rowschema.CriteoSchema(), in, reader.FormatParquet, middle)
	if got := parquetColumns(t, middle); got[0] != "label DOUBLE" || got[2] != "I2 DOUBLE" || got[39] != "C26 STRING" {
		t.Errorf("columns %v", got)
	}
	mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, middle, reader.FormatCriteo, out)
	if got := content(t, out); got != text.String() {
		t.Errorf("the rows changed:\n%.300s\nwant\n%.300s", got, text.String())
	}
}

func TestCriteoWantsItsColumns(t *testing.T) {
	dir := t.TempDir()
	names := []string{"C1", "label", "day"}
	for i := 1; i <= 13; i++ {
		names = append(names, fmt.Sprintf("I%d", i))
	}
	for i := 3; i <= 26; i++ {
		names = append(names, fmt.Sprintf("C%d", i))
	}
	csv := strings.Join(names, ",") + "\n" + strings.Join(names, ",") + "\n"
	in, out := write(t, dir, "in.csv", []byte(csv)), filepath.Join(dir, "out.tsv")
	from := reader.Schema{Format: reader.FormatCSV, Header: true}
	_, err := convertFile(from, in, reader.FormatCriteo, out)
	if err == nil || !strings.Contains(err.Error(), `needs the columns "C2"`) || !strings.Contains(err.Error(), `has no columns "day"`) {
		t.Errorf("%v", err)
	}
	var columns []OutputColumn
	for i, name := range names {
		if i == 2 {
			columns = append(columns, OutputColumn{From: "day", Column: reader.Column{Name: "C2"}})
		} else {
			columns = append(columns, OutputColumn{Column: reader.Column{Name: name}})
		}
	}
	mustConvertFile(t, from, in, reader.FormatCriteo, out, columns...)
	if got := strings.Split(content(t, out), "\t"); got[0] != "label" || got[1] != "I1" || got[14] != "C1" || got[15] != "day" || got[16] != "C3" {
		t.Errorf("%q", got)
	}
}

func TestWeightIsRefusedByIndexedFormats(t *testing.T) {
	dir := t.TempDir()
	s := reader.Schema{Format: reader.FormatCSV, Header: true, Columns: []reader.Column{
		{Name: "y", Role: reader.RoleLabel}, {Name: "w", Role: reader.RoleWeight}, {Name: "a", Role: reader.RoleSparse},
	}}
	in := write(t, dir, "in.csv", []byte("y,w,a\n1,2,3\n"))
	_, err := convertFile(s, in, reader.FormatLibSVM, filepath.Join(dir, "out.libsvm"))
	if err == nil || !strings.Contains(err.Error(), `"w"`) || !strings.Contains(err.Error(), "use --columns to leave it out") {
		t.Errorf("%v", err)
	}
}

// TestIndexedFormatsNeedFeatures checks that converting to an indexed format without a schema is
// refused. No column would be known to be a feature, and the lines would have only labels.
func TestIndexedFormatsNeedFeatures(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir, "in.csv", []byte("label,a,b\n1,2,3\n"))
	for _, format := range []reader.Format{reader.FormatLibSVM, reader.FormatLibFFM} {
		_, err := convertFile(reader.Schema{Format: reader.FormatCSV, Header: true}, in, format, filepath.Join(dir, "out"))
		var options *reader.OptionsError
		if !errors.As(err, &options) || !strings.Contains(err.Error(), "(--job) whose data.columns say which column has the role label") {
			t.Errorf("%v: %v", format, err)
		}
	}
}

func TestParquetKeepsTheSchemasOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	s := reader.Schema{Format: reader.FormatParquet, Columns: []reader.Column{{Name: "z", Role: reader.RoleLabel}, {Name: "m", Role: reader.RoleSparse, Separator: " "}, {Name: "a"}}}
	w, err := reader.CreateRows(t.Context(), testOptions(s).Sources, path, s.Format, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"1,x y,q", "0,,"} {
		if err := w.Write(bytes.Split([]byte(row), []byte(","))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := parquetColumns(t, path), []string{"z DOUBLE", "m list of STRING", "a STRING"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, path, reader.FormatCSV, path+".csv")
	if got, want := content(t, path+".csv"), "z,m,a\n1,x|y,q\n0,,\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRowsThatCannotBeWritten checks that rows that the output format cannot represent count as bad
// rows of the input, with their position.
func TestRowsThatCannotBeWritten(t *testing.T) {
	s := reader.Schema{Format: reader.FormatCSV, Header: true, Columns: []reader.Column{{Name: "y", Role: reader.RoleLabel}, {Name: "a", Role: reader.RoleSparse}}}
	text := "y,a\n1,p\n\nx,q\n1\n0,r\nz,s\n1,u\n"
	for name, change := range map[string]func(*Options){
		"streamed": func(*Options) {},
		"sorted":   func(o *Options) { o.SortBy, o.Descending = "a", true },
		"split":    func(o *Options) { o.Split, o.To = Split{Fraction: 0.7}, append(o.To, o.To[0]+"2.parquet") },
	} {
		dir := t.TempDir()
		in := write(t, dir, "in.csv", []byte(text))
		var bad bytes.Buffer
		o := Options{From: testOptions(s, in), Format: reader.FormatParquet, To: []string{filepath.Join(dir, "out.parquet")}}
		o.From.MaxBadRows, o.From.Quarantine, o.From.QuarantineRows = 3, &bad, 9
		change(&o)
		summary, err := Run(context.Background(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		written := int64(0)
		for _, n := range summary.Written {
			written += n
		}
		if c := summary.Counts; written != 3 || c.Examples != 3 || c.Rows != 6 || c.BadRows != 3 || len(c.Bad) != 2 {
			t.Fatalf("%s: %+v", name, summary)
		}
		if name == "split" && summary.Written[0] != 2 {
			t.Errorf("split: %v rows", summary.Written)
		}
		first := summary.Counts.Bad[1]
		if first.Reason != reader.ReasonOutput || first.Rows != 2 || first.Example.URI != in || first.Example.Line != 4 || first.Example.Offset != 9 ||
			!strings.Contains(first.Example.Detail, "column y") || first.Example.Row != "x\tq" {
			t.Errorf("%s: %+v", name, first)
		}
		if got := strings.Count(bad.String(), "\n"); got != 3 {
			t.Errorf("%s: %d rows in quarantine: %s", name, got, &bad)
		}
		o.From.MaxBadRows = 2
		var over *reader.BadRowsError
		if _, err := Run(context.Background(), o); !errors.As(err, &over) {
			t.Errorf("%s: %v, want a BadRowsError", name, err)
		}
	}
}

// TestChangedInputWithLimit checks that no file appears if the input changed before Limit ended the
// reading in the middle of a file of Parquet.
func TestChangedInputWithLimit(t *testing.T) {
	type row struct {
		Y string `parquet:"y"`
	}
	rows := slices.Repeat([]row{{"1"}}, 1000)
	rows[0].Y = "x" // a bad row
	in := writeParquet(t, rows, parquet.MaxRowsPerRowGroup(10))
	out := filepath.Join(t.TempDir(), "out.parquet")
	s := reader.Schema{Format: reader.FormatParquet, Columns: []reader.Column{{Name: "y", Role: reader.RoleLabel}}, Label: reader.LabelRule{Column: "y", Op: ">=", Value: 1}}
	o := Options{From: testOptions(s, in), Format: reader.FormatParquet, To: []string{out}}
	later := time.Now().Add(time.Second)
	o.From.Quarantine, o.From.QuarantineRows = writerFunc(func(p []byte) (int, error) { return len(p), os.Chtimes(in, later, later) }), 1
	o.From.Limit = 5
	if _, err := Run(t.Context(), o); !errors.Is(err, source.ErrChanged) || strings.Count(err.Error(), source.ErrChanged.Error()) != 1 {
		t.Errorf("the error is %v, want %v, once", err, source.ErrChanged)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", out, err)
	}
	o.From.Quarantine = nil
	if summary, err := Run(t.Context(), o); err != nil || summary.Written[0] != 5 {
		t.Errorf("without a change: %+v, %v", summary, err)
	}
}

type storedRow struct {
	Y     bool     `parquet:"Y"`
	ID    int64    `parquet:"ID"`
	Small *int32   `parquet:"Small,optional"`
	Big   uint64   `parquet:"Big"`
	F     float32  `parquet:"F"`
	D     *float64 `parquet:"D,optional"`
	Text  string   `parquet:"Text"`
	Tags  []string `parquet:"Tags,list"`
	IDs   []int64  `parquet:"IDs,list"`
}

func storedRows() []storedRow {
	small, d := int32(-7), 0.1
	return []storedRow{
		{true, math.MaxInt64, &small, math.MaxUint64, 0.1, &d, "a|b", []string{"x|y", "z"}, []int64{1, 2}},
		{false, math.MinInt64, nil, 0, float32(math.NaN()), nil, "c", nil, []int64{3}},
	}
}

// TestParquetToParquetKeepsTypes checks that lists stay lists and numbers stay numbers, so that
// training on the new file gives the same as on the old one, with a schema and without.
func TestParquetToParquetKeepsTypes(t *testing.T) {
	in := writeParquet(t, storedRows())
	described := reader.Schema{Format: reader.FormatParquet, Columns: []reader.Column{
		{Name: "Y", Role: reader.RoleLabel}, {Name: "ID", Role: reader.RoleSparse}, {Name: "Small", Role: reader.RoleDense}, {Name: "Big", Role: reader.RoleSparse}, {Name: "F"},
		{Name: "D", Role: reader.RoleDense}, {Name: "Text", Role: reader.RoleSparse}, {Name: "Tags", Role: reader.RoleSparse}, {Name: "IDs", Role: reader.RoleSparse, Separator: ";"},
	}}
	want := examplesOf(t, testOptions(described, in))
	for name, schema := range map[string]reader.Schema{"described": described, "bare": {Format: reader.FormatParquet}} {
		out := filepath.Join(t.TempDir(), "out.parquet")
		summary := mustConvertFile(t, schema, in, reader.FormatParquet, out)
		if got, want := parquetColumns(t, out), parquetColumns(t, in); !slices.Equal(got, want) {
			t.Errorf("%s: columns %v, want %v", name, got, want)
		}
		if len(summary.Lists) > 0 {
			t.Errorf("%s: %v became text", name, summary.Lists)
		}
		got, err := parquet.ReadFile[storedRow](out)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf("%+v", pointed(got)), fmt.Sprintf("%+v", pointed(storedRows())); got != want {
			t.Errorf("%s: rows %s\nwant %s", name, got, want)
		}
		if examplesOf(t, testOptions(described, out)) != want {
			t.Errorf("%s: other examples", name)
		}
	}
}

// pointed follows the pointers.
func pointed(rows []storedRow) (values []any) {
	for _, r := range rows {
		if r.Small != nil {
			values = append(values, *r.Small, *r.D)
		}
		r.Small, r.D = nil, nil
		values = append(values, r)
	}
	return values
}

// TestDecimalsStayDecimals goes through both ways to store them.
func TestDecimalsStayDecimals(t *testing.T) {
	for _, name := range []string{"types_int.parquet", "types_bytes.parquet"} {
		in, dir := filepath.Join("..", "testdata", name), t.TempDir()
		columns := namedColumns("large", "half", "y", "small", "nothing")
		if name == "types_bytes.parquet" {
			columns = append(columns, namedColumns("wide", "shorts")...)
		}
		from := reader.Schema{Format: reader.FormatParquet}
		mustConvertFile(t, from, in, reader.FormatParquet, filepath.Join(dir, "out.parquet"), columns...)
		if got := parquetColumns(t, filepath.Join(dir, "out.parquet")); got[0] != "large DECIMAL(15,2)" || got[1] != "half FLOAT" {
			t.Errorf("%v", got)
		}
		mustConvertFile(t, from, in, reader.FormatCSV, filepath.Join(dir, "1.csv"), columns...)
		mustConvertFile(t, from, filepath.Join(dir, "out.parquet"), reader.FormatCSV, filepath.Join(dir, "2.csv"))
		if want, got := content(t, filepath.Join(dir, "1.csv")), content(t, filepath.Join(dir, "2.csv")); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestListsBecomeText checks that lists become text only with an explicit separator, and only if
// that is unambiguous.
func TestListsBecomeText(t *testing.T) {
	in, out := writeParquet(t, storedRows()[1:]), filepath.Join(t.TempDir(), "out.csv")
	summary := mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, in, reader.FormatCSV, out, namedColumns("Y", "Tags", "IDs")...)
	if len(summary.Lists) != 2 || summary.Lists[1] != (ListColumn{"IDs", "|"}) {
		t.Errorf("lists %v", summary.Lists)
	}
	in = writeParquet(t, storedRows())
	o := Options{From: testOptions(reader.Schema{Format: reader.FormatParquet}, in), Format: reader.FormatCSV, To: []string{out}, Columns: namedColumns("Y", "Tags", "IDs", "Text")}
	summary, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, out); got != "false,,3,c\n" || summary.Counts.BadRows != 1 || summary.Counts.Bad[0].Reason != reader.ReasonOutput {
		t.Errorf("%q %+v", got, summary)
	}
	o.From.Schema.Columns = []reader.Column{{Name: "Y", Role: reader.RoleLabel}, {Name: "Tags", Role: reader.RoleSparse, Separator: "; "}, {Name: "Text"}, {Name: "IDs", Role: reader.RoleSparse}}
	if summary, err = Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got := content(t, out); got != "1,x|y; z,1|2,a|b\n0,,3,c\n" || summary.Lists[0].Separator != "; " {
		t.Errorf("%q %+v", got, summary)
	}
	o.Format, o.Columns = reader.FormatLibFFM, nil // the default separator goes with the column
	if _, err = Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got := content(t, out); !strings.Contains(got, " 1:1:1 1:2:1\n") {
		t.Errorf("%q", got)
	}
}

// TestStoredUnite checks that the files of one input may store a column in different ways.
func TestStoredUnite(t *testing.T) {
	type ints struct {
		A int32
		B float32
		C int64
		D []string `parquet:"D,list"`
	}
	type others struct {
		A int64
		B float64
		C string
		D string
	}
	o := testOptions(reader.Schema{Format: reader.FormatParquet}, writeParquet(t, []ints{{1, 1.5, 7, []string{"p", "q"}}}), writeParquet(t, []others{{1 << 40, 0.1, "x", "r"}}))
	out := filepath.Join(t.TempDir(), "out.parquet")
	if _, err := Run(context.Background(), Options{From: o, Format: reader.FormatParquet, To: []string{out}}); err != nil {
		t.Fatal(err)
	}
	if got, want := parquetColumns(t, out), []string{"A INT(64,true)", "B DOUBLE", "C STRING", "D list of STRING"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, out, reader.FormatCSV, out+".csv")
	if got, want := content(t, out+".csv"), "A,B,C,D\n1,1.5,7,p|q\n1099511627776,0.1,x,r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The files in testdata are described in ../parquet_leaf_test.go.

func TestParquetTypes(t *testing.T) {
	for name, file := range map[string]struct {
		columns []OutputColumn
		want    string
	}{
		"types_int.parquet": {namedColumns("y", "nothing", "half", "small", "large"),
			"y,nothing,half,small,large\ntrue,,1.5,-0.05,-0.05\nfalse,,,,\ntrue,,-5.9604645e-08,123.40,123.40\n"},
		"types_bytes.parquet": {namedColumns("small", "large", "wide", "shorts"),
			"small,large,wide,shorts\n-0.05,-0.05,-12345678901234567890123456789.12,1.50|2.00\n,,,\n123.40,123.40,0.01,\n"},
		"uuids_and_twice.parquet": {namedColumns("id", "ids"),
			"id,ids\n00112233-4455-6677-8899-aabbccddeeff,00112233-4455-6677-8899-aabbccddeeff|ffffffff-ffff-ffff-ffff-ffffffffffff\n,\nffffffff-ffff-ffff-ffff-ffffffffffff,\n"},
	} {
		out := filepath.Join(t.TempDir(), "out.csv")
		mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, filepath.Join("..", "testdata", name), reader.FormatCSV, out, file.columns...)
		if got := content(t, out); got != file.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, file.want)
		}
	}
}

func TestUnsupportedColumnsOnlyMatterWhenUsed(t *testing.T) {
	in, out := filepath.Join("..", "testdata", "types_int.parquet"), filepath.Join(t.TempDir(), "out.csv")
	if _, err := convertFile(reader.Schema{Format: reader.FormatParquet}, in, reader.FormatCSV, out); err == nil || !strings.Contains(err.Error(), "--columns") {
		t.Errorf("%v, want a word on --columns", err)
	}
	mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, in, reader.FormatCSV, out, namedColumns("y")...)
	if got := content(t, out); got != "y\ntrue\nfalse\ntrue\n" {
		t.Errorf("%q", got)
	}
}

// TestColumnsInGroups checks that a column in a group of Parquet is named by its path, also without
// a schema that names it.
func TestColumnsInGroups(t *testing.T) {
	type place struct {
		City string
		Size *float64
	}
	type row struct {
		ID int64
		At place
	}
	big := 2.5
	in := writeParquet(t, []row{{2, place{"b", &big}}, {1, place{"a", nil}}})
	named := func(names ...string) (columns []OutputColumn) {
		for _, name := range names {
			columns = append(columns, OutputColumn{Column: reader.Column{Name: name}})
		}
		return columns
	}
	out := filepath.Join(t.TempDir(), "out.csv")
	o := Options{From: testOptions(reader.Schema{Format: reader.FormatParquet}, in), Format: reader.FormatCSV, Header: true, To: []string{out}, Columns: named("At.Size", "ID"), SortBy: "At.City"}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, out), "At.Size,ID\n,1\n2.5,2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	typed := filepath.Join(t.TempDir(), "out.parquet")
	columns := named("Size", "ID")
	columns[0].From = "At.Size"
	mustConvertFile(t, reader.Schema{Format: reader.FormatParquet}, in, reader.FormatParquet, typed, columns...)
	if got := parquetColumns(t, typed); !slices.Equal(got, []string{"Size DOUBLE", "ID INT(64,true)"}) {
		t.Errorf("%q", got)
	}
	for name, says := range map[string]string{"At.Nothing": `no column "At.Nothing"`, "At": "At.x", "No.City": `no column "No.City"`, "": "leave these columns out"} {
		var columns []OutputColumn
		if name != "" {
			columns = named(name)
		}
		if _, err := convertFile(reader.Schema{Format: reader.FormatParquet}, in, reader.FormatCSV, out, columns...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}

// TestConvertLeavesMissingValuesOut checks that missing values of a cell are left out in formats
// that have no notation for them.
func TestConvertLeavesMissingValuesOut(t *testing.T) {
	dir := t.TempDir()
	schema := reader.Schema{Format: reader.FormatCSV, Header: true, NullValues: []string{"-", "nan"}, Columns: []reader.Column{
		{Name: "y", Role: reader.RoleLabel}, {Name: "a", Role: reader.RoleSparse, Separator: "|"},
		{Name: "b", Role: reader.RoleSparse, Separator: "|", WeightSeparator: ":"}, {Name: "c", Role: reader.RoleSparse},
	}}
	text := "y,a,b,c\n1,x|nan|y,u:2|nan:3|-,nan\n0,-|nan,-,x-y\n1,nanx||-,u||v:1,-\n"
	in := testOptions(schema, write(t, dir, "in.csv", []byte(text)))
	want := examplesOf(t, in)
	for _, name := range []string{"out.parquet", "out.csv"} {
		c := Options{From: in, To: []string{filepath.Join(dir, name)}, Header: true}
		c.Format, _ = rowschema.FormatOf(name)
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		out := schema
		out.Format, out.NullValues = c.Format, nil
		if got := examplesOf(t, testOptions(out, c.To[0])); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
