package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// mixedSchema has a column of every kind.
func mixedSchema(format Format) Schema {
	return Schema{Format: format, Header: true, Columns: []Column{
		{Name: "click", Role: RoleLabel},
		{Name: "price", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformLog1p}}},
		{Name: "age", Role: RoleDense, Missing: -1},
		{Name: "ad", Role: RoleSparse},
		{Name: "tags", Role: RoleSparse, Separator: "|", WeightSeparator: ":"},
		{Name: "words", Role: RoleSparse, Separator: " "},
	}}
}

// mixedRows are rows of mixedSchema whose features are canonical numbers, so
// that every format can hold them.
func mixedRows(n int) (rows [][]string) {
	for i := range n {
		r := func(stream uint64) uint64 { return hashes.Random(9, 9, stream, uint64(i)) }
		row := []string{
			fmt.Sprint(r(0) % 2), fmt.Sprint(float64(int64(r(1)%20000)-300) / 8), fmt.Sprint(r(2) % 90),
			fmt.Sprint(r(3) % 50), "", "",
		}
		if r(4)%4 == 0 {
			row[2] = ""
		}
		for j := range r(5) % 4 {
			if j > 0 {
				row[4], row[5] = row[4]+"|", row[5]+" "
			}
			row[4] += fmt.Sprintf("%d:%v", r(10+j)%20, float64(r(20+j)%8)/4)
			row[5] += fmt.Sprint(r(30+j) % 1000)
		}
		rows = append(rows, row)
	}
	return rows
}

// writeRows writes the rows into a new file of the format.
func writeRows(t testing.TB, o *Options, path string, schema Schema, rows [][]string) {
	t.Helper()
	f, err := CreateRows(context.Background(), o.Sources, path, schema.Format, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		cells := make([][]byte, len(row))
		for i := range row {
			cells[i] = []byte(row[i])
		}
		if err := f.Write(cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFormatsAgree writes the same rows in every format and compression and
// expects the same examples of all of them.
func TestFormatsAgree(t *testing.T) {
	rows := mixedRows(200)
	var want []string
	for _, c := range []struct {
		format Format
		name   string
	}{
		{FormatCSV, "a.csv"}, {FormatTSV, "a.tsv"}, {FormatLibSVM, "a.svm"}, {FormatLibFFM, "a.ffm"},
		{FormatParquet, "a.parquet"}, {FormatCSV, "a.csv.gz"}, {FormatTSV, "a.tsv.zst"}, {FormatLibSVM, "a.svm.snappy"},
	} {
		schema := mixedSchema(c.format)
		if c.format.Indexed() {
			schema.Header = false
			// Weights of single values are 1 in these formats, as in the others.
			var err error
			if schema, err = rowschema.WithIndices(schema); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), c.name)
		o := testOptions(schema, path)
		o.ChunkBytes = 500
		writeRows(t, &o, path, schema, rows)
		passes, counts := mustRead(t, o)
		if counts.Examples != 200 || counts.BadRows != 0 {
			t.Fatalf("%s: %+v", c.name, counts)
		}
		got := described(passes)
		if want == nil {
			want = got
		}
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%s: example %d is\n%s\nwant\n%s", c.name, i, got[i], want[i])
			}
		}
	}
}

func TestWriterRefusesWhatItCannotHold(t *testing.T) {
	schema := Schema{Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "x", Role: RoleDense}, {Name: "c", Role: RoleSparse, WeightSeparator: ":"}}}
	for _, c := range []struct {
		format Format
		row    string
		want   string
	}{
		{FormatCriteo, "1|a\tb|c", "delimiter"},
		{FormatCSV, "1|2\n|c", "line end"},
		{FormatCSV, "1|2", "2 cells, but there are 3"},
		{FormatLibSVM, "yes|2|c", "label"},
		{FormatLibSVM, "1|two|c", "not a number"},
		{FormatLibSVM, "||", "empty line"},
		{FormatLibFFM, "1|2|c:heavy", "weight"},
		{FormatParquet, "1|two|c", "not a number"},
	} {
		f, err := CreateRows(t.Context(), source.New(source.Options{}), filepath.Join(t.TempDir(), "rows"), c.format, schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Write(bytes.Split([]byte(c.row), []byte("|"))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %q: %v, want an error about %q", c.format, c.row, err, c.want)
		}
		if err := f.Abort(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAbortedFileLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	o := testOptions(mixedSchema(FormatCSV), path)
	f, err := CreateRows(context.Background(), o.Sources, path, FormatCSV, o.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestCompressionOfOutput checks that an output name with a compression that cannot be written is
// reported as a mistake of the caller.
func TestCompressionOfOutput(t *testing.T) {
	o := testOptions(mixedSchema(FormatCSV), "in.csv")
	for name, format := range map[string]Format{"a.csv.bz2": FormatCSV, "a.parquet.gz": FormatParquet, "a.parquet.bz2": FormatParquet} {
		path := filepath.Join(t.TempDir(), "none", name)
		if _, err := CreateRows(context.Background(), o.Sources, path, format, o.Schema); !errors.As(err, new(*OptionsError)) {
			t.Errorf("%s: the error is %v, want one of options", name, err)
		}
		if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
			t.Errorf("%s: a directory was made for it (%v)", name, err)
		}
	}
}

// TestParquetDictionaries checks that columns with repeated values get dictionaries, and that
// others do not.
func TestParquetDictionaries(t *testing.T) {
	schema := Schema{Format: FormatParquet, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "count", Role: RoleDense}, {Name: "score", Role: RoleDense},
		{Name: "site", Role: RoleSparse}, {Name: "user", Role: RoleSparse}, {Name: "tags", Role: RoleSparse, Separator: "|"},
		{Name: "empty", Role: RoleSparse},
	}}
	for _, n := range []int{3, 2*4096 + 1} {
		var rows [][]string
		for i := range n {
			rows = append(rows, []string{"1", fmt.Sprint(i % 2), fmt.Sprint(float64(i) / 8), fmt.Sprint(i % 2), fmt.Sprint(i), "a|b", ""})
		}
		o := testOptions(schema)
		path := filepath.Join(t.TempDir(), "rows.parquet")
		writeRows(t, &o, path, schema, rows)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		var with []string
		for _, column := range file.Metadata().RowGroups[0].Columns {
			if column.MetaData.DictionaryPageOffset > 0 {
				with = append(with, column.MetaData.PathInSchema[0])
			}
		}
		if got, want := fmt.Sprint(with), "[y count site tags empty]"; got != want {
			t.Errorf("%d rows: dictionaries of %s, want %s", n, got, want)
		}
		o.URIs, o.BatchSize, o.BatchesPerPass = []string{path}, n, 1
		passes, _ := mustRead(t, o)
		b := &passes[0].Batches[0]
		if last := len(b.Dense) - 2; b.N != n || b.Dense[last] != float32((n-1)%2) || b.Dense[last+1] != float32(n-1)/8 {
			t.Errorf("%d rows, the last one with %v", b.N, b.Dense[last:])
		}
		if key := passes[0].Keys[b.Rows[b.Index[len(b.Index)-3]]]; key != Key("user", fmt.Append(nil, n-1)) {
			t.Errorf("the last user has the key %x", key)
		}
	}
}
