package reader

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/faults"
	"aibox/reader/rowschema"
)

// hiveSchema has a column of every role; dt and hour are no columns of the files.
func hiveSchema(format Format) Schema {
	return Schema{Format: format, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "x", Role: RoleDense, Missing: 7}, {Name: "w", Role: RoleWeight},
		{Name: "site", Role: RoleSparse}, {Name: "tags", Role: RoleSparse, Separator: "|"}, {Name: "note"},
		{Name: "bin", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{1}}}},
		{Name: "dt", Role: RoleSparse}, {Name: "hour", Role: RoleDense, Missing: -1},
	}}
}

// hiveTree writes files into directories and returns the first one's.
func hiveTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestHiveText checks that text that Hive has written is read correctly: quotes are ordinary
// characters, \N is null in every role, and directories give columns.
func TestHiveText(t *testing.T) {
	rows := "1\t2\t0.5\t\"nike\" shoes\ta|\\N|b\tq\t0\n" +
		"0\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n" +
		"\\N\t1\t1\ts\ta\tq\t2\n" + // a label is needed
		"0\t1_000\t1\ts\ta\tq\t2\n"
	dir := hiveTree(t, map[string]string{
		"t/dt=2026-11-20 10%3A00%25/hour=7/000000_0":              rows,
		"t/dt=__HIVE_DEFAULT_PARTITION__/hour=x=1/hour=8/a/00000": "1\t3\t1\t\tc\t\t5\n",
	})
	for _, uri := range []string{dir + "/t", dir + "/**", dir + "/t/*/*"} {
		o := testOptions(hiveSchema(FormatTSV), uri)
		o.GroupBy, o.PassThrough = "site", []string{"site", "note", "dt", "hour"}
		passes, counts := mustRead(t, o)
		if counts.Examples != 3 || counts.BadRows != 2 || counts.Bad[0].Reason != faults.ReasonNumber || counts.Bad[1].Reason != faults.ReasonNoLabel {
			t.Fatalf("%s: %+v", uri, counts)
		}
		day := "2026-11-20 10:00%"
		var want []string
		for _, e := range []struct {
			label, weight, dense string
			bags                 []string
		}{
			{"1", "0.5", "[2 7]", []string{k("site", `"nike" shoes`), k("tags", "a") + " " + k("tags", "b"), k("dt", day), k("bin", "0")}},
			{"0", "1", "[7 7]", []string{"", "", k("dt", day), ""}},
			{"1", "1", "[3 8]", []string{"", k("tags", "c"), "", k("bin", "1")}},
		} {
			line := fmt.Sprintf("%s w%s %s", e.label, e.weight, e.dense)
			for _, bag := range e.bags {
				if bag != "" {
					bag = " " + bag
				}
				line += " [" + bag + " ]"
			}
			want = append(want, line)
		}
		for i, got := range described(passes) {
			if !strings.HasPrefix(got, want[i]+" g") { // the group follows
				t.Errorf("%s: example %d is\n%s\nwant\n%s", uri, i, got, want[i])
			}
		}
		columns := passes[0].Batches[0].Columns
		if got, want := fmt.Sprintf("%q", columns), `[["\"nike\" shoes" "" ""] ["q" "" ""] ["2026-11-20 10:00%" "2026-11-20 10:00%" ""] ["7" "7" "8"]]`; got != want {
			t.Errorf("%s: columns %s, want %s", uri, got, want)
		}
		if g := passes[0].Batches[0].Groups; g[1] != g[2] || g[0] == g[1] {
			t.Errorf("%s: groups %v", uri, g)
		}
	}
	o := testOptions(hiveSchema(FormatTSV), dir+"/t")
	o.KeepUnlabelled = true
	if passes, counts := mustRead(t, o); counts.Examples != 4 || !math.IsNaN(float64(passes[0].Batches[0].Labels[2])) {
		t.Errorf("unlabelled: %+v", counts)
	}
}

// TestPartitionsBesideNamedColumns checks that with a header and in Parquet a column of the file
// itself has precedence over that of a directory. A file outside of such a directory lacks the
// column.
func TestPartitionsBesideNamedColumns(t *testing.T) {
	type row struct {
		Y    int64  `parquet:"y"`
		Site string `parquet:"site"`
	}
	var data bytes.Buffer
	w := parquet.NewGenericWriter[row](&data)
	if _, err := w.Write([]row{{1, "a"}, {0, "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for format, text := range map[Format]string{FormatCSV: "site,y\na,1\nb,0\n", FormatTSV: "y\tsite\n1\ta\n0\tb\n", FormatParquet: data.String()} {
		dir := hiveTree(t, map[string]string{"site=own/day=3/x": text, "site=own/day=__HIVE_DEFAULT_PARTITION__/y": text})
		s := Schema{Format: format, Header: format != FormatParquet, Columns: []Column{
			{Name: "y", Role: RoleLabel}, {Name: "site", Role: RoleSparse}, {Name: "day", Role: RoleDense, Missing: -1},
		}}
		o := testOptions(s, dir)
		o.PassThrough = []string{"day", "site"}
		passes, counts := mustRead(t, o)
		if counts.Examples != 4 || counts.BadRows != 0 {
			t.Fatalf("%v: %+v", format, counts)
		}
		b := &passes[0].Batches[0]
		if got := fmt.Sprint(b.Dense, b.Columns); got != "[3 3 -1 -1] [[3 3  ] [a b a b]]" {
			t.Errorf("%v: %s", format, got)
		}
		if want := []uint64{Key("site", []byte("a")), Key("site", []byte("b"))}; !slices.Equal(passes[0].Keys, want) {
			t.Errorf("%v: keys %x, want %x", format, passes[0].Keys, want)
		}
		o.URIs = append(o.URIs, write(t, t.TempDir(), "z", []byte(text)))
		if _, _, err := readAll(o); err == nil || !strings.Contains(err.Error(), `no column "day"`) {
			t.Errorf("%v: without the directory: %v", format, err)
		}
	}
}

// TestNullValues are what the schema says.
func TestNullValues(t *testing.T) {
	s := adSchema()
	s.NullValues = []string{"NA", "-1"}
	passes, counts := mustRead(t, testOptions(s, write(t, t.TempDir(), "a.csv", []byte("1, NA,NA,a|NA\n1,-1,-1,-1\n1,-1.0, NA2,\n"))))
	if counts.Examples != 3 {
		t.Fatalf("%+v", counts)
	}
	b := &passes[0].Batches[0]
	if b.Dense[0] != s.Columns[1].Missing || b.Dense[1] != s.Columns[1].Missing || b.Dense[2] == b.Dense[0] || b.Features() != 2 {
		t.Errorf("dense %v, %d features", b.Dense, b.Features())
	}
	// Only tsv has Hive's null by itself.
	if _, counts := mustRead(t, testOptions(adSchema(), write(t, t.TempDir(), "a.csv", []byte("1,\\N,a,b\n1,1,a,b\n")))); counts.BadRows != 1 {
		t.Errorf("csv: %+v", counts)
	}
}

// TestQuoting can be chosen for both formats.
func TestQuoting(t *testing.T) {
	for _, c := range []struct {
		format  Format
		quoting rowschema.Quoting
		value   string
	}{
		{FormatCSV, rowschema.QuotingDefault, "a b"}, {FormatCSV, rowschema.QuotingNone, `"a b"`}, {FormatTSV, rowschema.QuotingDefault, `"a b"`}, {FormatTSV, rowschema.QuotingRFC4180, "a b"},
	} {
		s := Schema{Format: c.format, Delimiter: ';', Quoting: c.quoting, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "c", Role: RoleSparse}}}
		passes, counts := mustRead(t, testOptions(s, write(t, t.TempDir(), "a", []byte("1;\"a b\"\n"))))
		if counts.Examples != 1 || passes[0].Keys[0] != Key("c", []byte(c.value)) {
			t.Errorf("%v, quoting %d: %+v", c.format, c.quoting, counts)
		}
	}
}

// TestIgnoredColumnsMayHoldAnything checks that only columns that are used must be valid UTF-8.
func TestIgnoredColumnsMayHoldAnything(t *testing.T) {
	s := adSchema()
	s.Columns = append(s.Columns, Column{Name: "raw", Role: RoleIgnore})
	path := write(t, t.TempDir(), "a.csv", []byte("1,1,a,b,\xff\xfe\n1,1,a,b,\"\xff\"\n1,1,\xff,b,\xfe\n"))
	o := testOptions(s, path)
	_, counts := mustRead(t, o)
	if counts.Examples != 2 || counts.Bad[0].Reason != faults.ReasonUTF8 || !strings.Contains(counts.Bad[0].Example.Detail, "column c: byte 5") {
		t.Errorf("%+v", counts)
	}
	o.PassThrough = []string{"raw"}
	if _, counts, _ = readAll(o); counts.BadRows != 3 {
		t.Errorf("passed through: %+v", counts)
	}
}
