package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// convertFile converts one file without a job and returns the summary.
func convertFile(from Schema, input string, to Format, output string, columns ...OutputColumn) (*ConvertSummary, error) {
	o := ConvertOptions{From: testOptions(from, input), Format: to, To: []string{output}, Columns: columns}
	o.Header = to == FormatCSV || to == FormatTSV
	o.From.MaxBadRows = 0
	return Convert(context.Background(), o)
}

func mustConvertFile(t *testing.T, from Schema, input string, to Format, output string, columns ...OutputColumn) *ConvertSummary {
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

// TestCriteoThroughParquet: columns have no names in Criteo, so their order must
// survive a format whose columns do.
func TestCriteoThroughParquet(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for row := range 50 {
		cells := []string{fmt.Sprint(row % 2)}
		for i := 1; i <= 13; i++ {
			cells = append(cells, fmt.Sprint(100*i+row))
		}
		for i := 1; i <= 26; i++ {
			cells = append(cells, fmt.Sprintf("c%d_%d", i, row))
		}
		text.WriteString(strings.Join(cells, "\t") + "\n")
	}
	in, middle, out := write(t, dir, "1.tsv", []byte(text.String())), filepath.Join(dir, "2.parquet"), filepath.Join(dir, "3.tsv")
	mustConvertFile(t, CriteoSchema(), in, FormatParquet, middle)
	if got := parquetColumns(t, middle); got[0] != "label DOUBLE" || got[2] != "I2 DOUBLE" || got[39] != "C26 STRING" {
		t.Errorf("columns %v", got)
	}
	mustConvertFile(t, Schema{Format: FormatParquet}, middle, FormatCriteo, out)
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
	from := Schema{Format: FormatCSV, Header: true}
	_, err := convertFile(from, in, FormatCriteo, out)
	if err == nil || !strings.Contains(err.Error(), `needs the columns "C2"`) || !strings.Contains(err.Error(), `has no columns "day"`) {
		t.Errorf("%v", err)
	}
	var columns []OutputColumn
	for i, name := range names {
		if i == 2 {
			columns = append(columns, OutputColumn{From: "day", Column: Column{Name: "C2"}})
		} else {
			columns = append(columns, OutputColumn{Column: Column{Name: name}})
		}
	}
	mustConvertFile(t, from, in, FormatCriteo, out, columns...)
	if got := strings.Split(content(t, out), "\t"); got[0] != "label" || got[1] != "I1" || got[14] != "C1" || got[15] != "day" || got[16] != "C3" {
		t.Errorf("%q", got)
	}
}

func TestWeightIsRefusedByIndexedFormats(t *testing.T) {
	dir := t.TempDir()
	s := Schema{Format: FormatCSV, Header: true, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "w", Role: RoleWeight}, {Name: "a", Role: RoleSparse},
	}}
	in := write(t, dir, "in.csv", []byte("y,w,a\n1,2,3\n"))
	_, err := convertFile(s, in, FormatLibSVM, filepath.Join(dir, "out.libsvm"))
	if err == nil || !strings.Contains(err.Error(), `"w"`) || !strings.Contains(err.Error(), "use --columns to leave it out") {
		t.Errorf("%v", err)
	}
}

func TestParquetKeepsTheSchemasOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "z", Role: RoleLabel}, {Name: "m", Role: RoleSparse, Separator: " "}, {Name: "a"}}}
	o := testOptions(s, path)
	writeRows(t, &o, path, s, [][]string{{"1", "x y", "q"}, {"0", "", ""}})
	if got, want := parquetColumns(t, path), []string{"z DOUBLE", "m list of STRING", "a STRING"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	mustConvertFile(t, Schema{Format: FormatParquet}, path, FormatCSV, path+".csv")
	if got, want := content(t, path+".csv"), "z,m,a\n1,x|y,q\n0,,\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRowsThatCannotBeWritten: they are bad rows of the input, with their place.
func TestRowsThatCannotBeWritten(t *testing.T) {
	s := Schema{Format: FormatCSV, Header: true, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "a", Role: RoleSparse}}}
	text := "y,a\n1,p\n\nx,q\n1\n0,r\nz,s\n1,u\n"
	for name, change := range map[string]func(*ConvertOptions){
		"streamed": func(*ConvertOptions) {},
		"sorted":   func(o *ConvertOptions) { o.SortBy, o.Descending = "a", true },
		"split":    func(o *ConvertOptions) { o.Split, o.To = Split{Fraction: 0.7}, append(o.To, o.To[0]+"2.parquet") },
	} {
		dir := t.TempDir()
		in := write(t, dir, "in.csv", []byte(text))
		var bad bytes.Buffer
		o := ConvertOptions{From: testOptions(s, in), Format: FormatParquet, To: []string{filepath.Join(dir, "out.parquet")}}
		o.From.MaxBadRows, o.From.Quarantine, o.From.QuarantineRows = 3, &bad, 9
		change(&o)
		summary, err := Convert(context.Background(), o)
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
		if first.Reason != ReasonOutput || first.Rows != 2 || first.Example.URI != in || first.Example.Line != 4 || first.Example.Offset != 9 ||
			!strings.Contains(first.Example.Detail, "column y") || first.Example.Row != "x\tq" {
			t.Errorf("%s: %+v", name, first)
		}
		if got := strings.Count(bad.String(), "\n"); got != 3 {
			t.Errorf("%s: %d rows in quarantine: %s", name, got, &bad)
		}
		o.From.MaxBadRows = 2
		var over *BadRowsError
		if _, err := Convert(context.Background(), o); !errors.As(err, &over) {
			t.Errorf("%s: %v, want a BadRowsError", name, err)
		}
	}
}
