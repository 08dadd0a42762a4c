package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/reader"
	"aibox/reader/rowschema"
)

const ratings = `userId,movieId,rating,timestamp
1,10,4.5,300
2,10,2,100
1,11,"5",200
3,12,3.5,200
3,99,1,9
`

const movies = "\xef\xbb\xbfmovieId,title,genres\r\n" +
	"10,\"Heat, The \"\"best\"\"\",Action|Crime\r\n11,Up,Animation\r\n12,Alien,\r\n"

// convertInput writes the ratings and the movies and returns options that read
// the ratings and write to the named files.
func convertInput(t *testing.T, to ...string) (Options, string) {
	t.Helper()
	dir := t.TempDir()
	o := testOptions(reader.Schema{Format: reader.FormatCSV, Header: true}, write(t, dir, "ratings.csv", []byte(ratings)))
	o.MaxBadRows, o.MaxBadFraction = 0, 0
	write(t, dir, "movies.csv", []byte(movies))
	c := Options{From: o, Format: reader.FormatCSV, Header: true}
	for _, name := range to {
		c.To = append(c.To, filepath.Join(dir, name))
	}
	return c, dir
}

func join(dir string) Join {
	return Join{
		On: "movieId", Add: []string{"genres", "title"},
		Table: reader.Options{URIs: []string{filepath.Join(dir, "movies.csv")}, Schema: reader.Schema{Format: reader.FormatCSV, Header: true}},
	}
}

func TestConvertJoinsSortsAndSplits(t *testing.T) {
	c, dir := convertInput(t, "train.csv", "eval.csv")
	c.Joins, c.SortBy, c.Split = []Join{join(dir)}, "timestamp", Split{Fraction: 0.8}
	summary, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	train := "userId,movieId,rating,timestamp,genres,title\n" +
		"3,99,1,9,,\n" +
		"2,10,2,100,Action|Crime,\"Heat, The \"\"best\"\"\"\n" +
		"1,11,5,200,Animation,Up\n" +
		"3,12,3.5,200,,Alien\n"
	eval := "userId,movieId,rating,timestamp,genres,title\n1,10,4.5,300,Action|Crime,\"Heat, The \"\"best\"\"\"\n"
	if got := content(t, c.To[0]); got != train {
		t.Errorf("train:\n%s\nwant\n%s", got, train)
	}
	if got := content(t, c.To[1]); got != eval {
		t.Errorf("eval:\n%s\nwant\n%s", got, eval)
	}
	if summary.Written[0] != 4 || summary.Written[1] != 1 || summary.Unmatched[0] != 1 || summary.Counts.Rows != 5 {
		t.Errorf("summary %+v", summary)
	}
}

func TestConvertSelectsAndRenames(t *testing.T) {
	c, _ := convertInput(t, "out.tsv")
	c.Format, c.Header, c.SortBy, c.Descending = reader.FormatTSV, false, "rating", true
	c.Columns = []OutputColumn{{From: "rating", Column: reader.Column{Name: "y", Role: reader.RoleLabel}}, {Column: reader.Column{Name: "userId", Role: reader.RoleSparse}}}
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, c.To[0]), "5\t1\n4.5\t1\n3.5\t3\n2\t2\n1\t3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestConvertSplitsWithoutSorting(t *testing.T) {
	for _, split := range []Split{{Fraction: 0.4}, {Fraction: 0.5, Random: true, Seed: 3}} {
		c, _ := convertInput(t, "a.csv", "b.csv.gz")
		c.Header, c.Split = false, split
		summary, err := Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !split.Random && (summary.Written[0] != 2 || content(t, c.To[0]) != "1,10,4.5,300\n2,10,2,100\n") {
			t.Errorf("%+v %q", summary, content(t, c.To[0]))
		}
		if summary.Written[0]+summary.Written[1] != 5 || summary.Written[0] == 5 || summary.Written[1] == 5 {
			t.Errorf("split %+v: %v rows", split, summary.Written)
		}
	}
}

// mixedSchema has columns of several kinds.
func mixedSchema(format reader.Format) reader.Schema {
	return reader.Schema{Format: format, Header: format == reader.FormatCSV, Columns: []reader.Column{
		{Name: "click", Role: reader.RoleLabel},
		{Name: "price", Role: reader.RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformLog1p}}},
		{Name: "ad", Role: reader.RoleSparse},
		{Name: "tags", Role: reader.RoleSparse, Separator: "|", WeightSeparator: ":"},
		{Name: "words", Role: reader.RoleSparse, Separator: " "},
	}}
}

// TestConvertThroughEveryFormat goes CSV -> Parquet -> LibFFM -> LibSVM -> CSV and
// expects the first file again.
func TestConvertThroughEveryFormat(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	var text strings.Builder
	text.WriteString("click,price,ad,tags,words\n")
	for i := range 100 { // LibSVM writes no weight of 1
		tags := []string{"", "7:0.5", fmt.Sprintf("%d:0.25|3:2", i)}[i%3]
		fmt.Fprintf(&text, "%d,%v,%d,%s,%s\n", i%2, float64(i-20)/8, i%50, tags, []string{"", "1", "2 3"}[i/2%3])
	}
	schema := mixedSchema(reader.FormatCSV)
	write(t, dir, "1.csv", []byte(text.String()))
	for _, step := range []struct {
		from, to   reader.Format
		read, file string
	}{
		{reader.FormatCSV, reader.FormatParquet, "1.csv", "2.parquet"}, {reader.FormatParquet, reader.FormatLibFFM, "2.parquet", "3.ffm"},
		{reader.FormatLibFFM, reader.FormatLibSVM, "3.ffm", "4.svm"}, {reader.FormatLibSVM, reader.FormatCSV, "4.svm", "5.csv"},
	} {
		read, err := rowschema.WithIndices(mixedSchema(step.from))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(context.Background(), Options{
			From: testOptions(read, path(step.read)), Format: step.to, Header: step.to == reader.FormatCSV,
			To: []string{path(step.file)}, Columns: columnsOf(schema),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := content(t, path("5.csv")), text.String(); got != want {
		t.Errorf("the rows changed:\n%s\nwant\n%s", got[:500], want[:500])
	}
}

func columnsOf(s reader.Schema) (list []OutputColumn) {
	for _, c := range s.Columns {
		list = append(list, OutputColumn{Column: c})
	}
	return list
}

// TestBucketizedTokens checks that a column of LibSVM whose values training puts into buckets is
// copied unchanged.
func TestBucketizedTokens(t *testing.T) {
	schema := reader.Schema{Format: reader.FormatLibSVM, Columns: []reader.Column{{
		Name: "hour", Role: reader.RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{6, 18}}},
		IndexRange: [2]int64{6, 6}, HasIndexRange: true,
	}}}
	output := filepath.Join(t.TempDir(), "out.csv")
	mustConvertFile(t, schema, write(t, t.TempDir(), "in.svm", []byte("1 6:12\n0\n")), reader.FormatCSV, output)
	if got, want := content(t, output), "label,hour\n1,12\n0,\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestColumnsWithoutName checks that a column without a name can be left out, such as the row
// numbers that pandas writes.
func TestColumnsWithoutName(t *testing.T) {
	dir := t.TempDir()
	in, out := write(t, dir, "in.csv", []byte(",b,a,c,c\n0,1,2,3,3\n1,4,5,6,6\n")), filepath.Join(dir, "out.csv")
	s := reader.Schema{Format: reader.FormatCSV, Header: true}
	mustConvertFile(t, s, in, reader.FormatCSV, out, OutputColumn{Column: reader.Column{Name: "a"}}, OutputColumn{Column: reader.Column{Name: "b"}})
	if got, want := content(t, out), "a,b\n2,1\n5,4\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"", "c"} { // not by mistake
		if _, err := convertFile(s, in, reader.FormatCSV, out, OutputColumn{Column: reader.Column{Name: name}}); err == nil {
			t.Errorf("column %q was written", name)
		}
	}
	for text, want := range map[string]string{",b\n0,1\n": "column 1 of the input has no name; choose columns with --columns", "b,b\n0,1\n": `two columns "b"; choose the other columns with --columns`} {
		in := write(t, dir, "in.csv", []byte(text))
		if _, err := convertFile(s, in, reader.FormatCSV, out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestSortsLargeIntegers sorts by nanoseconds since 1970, which differ by less than float64 can
// represent.
func TestSortsLargeIntegers(t *testing.T) {
	c, dir := convertInput(t, "out.csv")
	c.From.URIs = []string{write(t, dir, "in.csv", []byte("t\n1700000000000000003\n\"\"\n1700000000000000001\n-1700000000000000002\n1700000000000000002\n"))}
	c.From.Schema.Columns = nil
	c.SortBy = "t"
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	want := "t\n\"\"\n-1700000000000000002\n1700000000000000001\n1700000000000000002\n1700000000000000003\n"
	if got := content(t, c.To[0]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestIndexedFormatsHaveNoHeader checks that the first line of LibSVM is a row, even if the caller
// says for all formats that they have a header.
func TestIndexedFormatsHaveNoHeader(t *testing.T) {
	dir := t.TempDir()
	in, out := write(t, dir, "in.libsvm", []byte("1 2:1\n0 3:0.5\n")), filepath.Join(dir, "out.csv")
	mustConvertFile(t, reader.Schema{Format: reader.FormatLibSVM, Header: true}, in, reader.FormatCSV, out)
	if got, want := content(t, out), "label,features\n1,2\n0,3:0.5\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestConvertFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Options, dir string)
		want   string
	}{
		"no such column to write": {func(c *Options, _ string) {
			c.Columns = []OutputColumn{{Column: reader.Column{Name: "genre"}}}
		}, `no column "genre"`},
		"a column written twice": {func(c *Options, _ string) {
			c.Columns = []OutputColumn{{Column: reader.Column{Name: "userId"}}, {Column: reader.Column{Name: "userId"}, From: "movieId"}}
		}, `column "userId" would be written twice`},
		"no such column to sort by": {func(c *Options, _ string) { c.SortBy = "time" }, `no column "time"`},
		"no such column to join on": {func(c *Options, dir string) {
			j := join(dir)
			j.On = "film"
			c.Joins = []Join{j}
		}, "no such column"},
		"no such column in the table": {func(c *Options, dir string) {
			j := join(dir)
			j.Key = "id"
			c.Joins = []Join{j}
		}, `no column "id"`},
		"a key twice": {func(c *Options, dir string) {
			j := join(dir)
			j.Table.URIs = []string{j.Table.URIs[0], j.Table.URIs[0]}
			c.Joins = []Join{j}
		}, "twice"},
		"a column twice": {func(c *Options, dir string) { c.Joins = []Join{join(dir), join(dir)} }, "with --add"},
		"too little memory": {func(c *Options, _ string) {
			c.SortBy, c.MemoryBytes = "timestamp", 100
		}, "raise --memory"},
		"two files without a split": {func(c *Options, _ string) { c.To = append(c.To, c.To[0]+"2") }, "split"},
		"a split at 1":              {func(c *Options, _ string) { c.Split.Fraction = 1 }, "share"},
		"a bad row": {func(c *Options, dir string) {
			write(t, dir, "ratings.csv", []byte(ratings+"1,2\n"))
		}, "wrong column count"},
		"no rows": {func(c *Options, dir string) {
			write(t, dir, "ratings.csv", []byte("a,b\n"))
		}, reader.ErrNoExamples.Error()},
	} {
		o, dir := convertInput(t, "out.csv")
		c.change(&o, dir)
		_, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "out.csv")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a file was left: %v", name, err)
		}
	}
}

// TestAllFilesOrNone checks that if the second file cannot be renamed to its name, or its bytes
// cannot be written, the first one does not stay either.
func TestAllFilesOrNone(t *testing.T) {
	c, dir := convertInput(t, "a.csv", "sub/b.csv")
	write(t, dir, "ratings.csv", []byte(ratings+"1,2\n"))
	c.Split, c.From.MaxBadRows, c.From.MaxBadFraction = Split{Fraction: 0.5, Random: true, Seed: 3}, 9, -1
	c.From.QuarantineRows, c.From.Quarantine = 9, writerFunc(func(p []byte) (int, error) {
		return len(p), os.RemoveAll(filepath.Join(dir, "sub")) // while both are being written
	})
	if _, err := Run(context.Background(), c); err == nil {
		t.Fatal("no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "ratings.csv" && e.Name() != "movies.csv" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestReplacedFileIsNamed checks the error if the second file cannot be renamed to its name after
// the first one has replaced an older file: it says which file is new.
func TestReplacedFileIsNamed(t *testing.T) {
	c, dir := convertInput(t, "a.csv", "sub/b.csv")
	write(t, dir, "a.csv", []byte("what was there\n"))
	write(t, dir, "ratings.csv", []byte(ratings+"1,2\n"))
	c.Split, c.From.MaxBadRows, c.From.MaxBadFraction = Split{Fraction: 0.5, Random: true, Seed: 3}, 9, -1
	c.From.QuarantineRows, c.From.Quarantine = 9, writerFunc(func(p []byte) (int, error) {
		return len(p), os.Mkdir(c.To[1], 0o755) // a directory cannot be replaced
	})
	_, err := Run(context.Background(), c)
	if err == nil || !strings.Contains(err.Error(), c.To[0]+": the new file is complete and has replaced an older one") {
		t.Errorf("%v: want an error that says that %s was replaced", err, c.To[0])
	}
	if text := content(t, c.To[0]); !strings.HasPrefix(text, "userId") {
		t.Errorf("%s holds %q", c.To[0], text)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestThresholdedLabels are written as 0 and 1, and sorting sees what they were.
func TestThresholdedLabels(t *testing.T) {
	c, _ := convertInput(t, "out.csv")
	c.From.Schema.Label = reader.LabelRule{Column: "rating", Op: ">=", Value: 4}
	c.Columns, c.SortBy = namedColumns("rating", "timestamp"), "rating"
	summary, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, c.To[0]), "rating,timestamp\n0,9\n0,100\n0,200\n1,300\n1,200\n"; got != want || summary.Label != "rating" {
		t.Errorf("%q, want %q; %+v", got, want, summary)
	}
}

// TestLabelsInWords checks that the meaning of a label in words is written, so that formats with
// numeric labels can have it.
func TestLabelsInWords(t *testing.T) {
	c, dir := convertInput(t, "out.libsvm")
	c.From.URIs = []string{write(t, dir, "clicks.csv", []byte("click,ad\nTrue,7\nfalse,8\n1,9\n"))}
	c.From.Schema.Columns = []reader.Column{{Name: "click", Role: reader.RoleLabel}, {Name: "ad", Role: reader.RoleDense}}
	c.Format, c.Header = reader.FormatLibSVM, false
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, c.To[0]), "1 0:7\n0 0:8\n1 0:9\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInputWithoutBytes checks that the log warns of compressed files of 0 bytes, in the input and
// in a side table. They count as empty, but rows may have been lost.
func TestInputWithoutBytes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rows-1.csv", []byte("y,a\n1,x\n"))
	none := write(t, dir, "rows-2.csv.gz", nil)
	write(t, dir, "side-1.csv", []byte("a,b\nx,7\n"))
	side := write(t, dir, "side-2.csv.zst", nil)
	var log bytes.Buffer
	csv := reader.Schema{Format: reader.FormatCSV, Header: true}
	o := Options{
		From: testOptions(csv, filepath.Join(dir, "rows-*")), To: []string{filepath.Join(dir, "out.csv")}, Format: reader.FormatCSV, Header: true,
		Joins: []Join{{Table: reader.Options{URIs: []string{filepath.Join(dir, "side-*")}, Schema: csv}, On: "a"}},
	}
	o.From.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for called, name := range map[string]string{"the input": none, "the side table": side} {
		if !strings.Contains(log.String(), called+" has 1 compressed file of 0 bytes, such as "+name) {
			t.Errorf("no word of %s:\n%s", name, &log)
		}
	}
}

// TestFilesWithFurtherColumns checks that without a list of columns, no column of any file is left
// out.
func TestFilesWithFurtherColumns(t *testing.T) {
	type few struct {
		Y, A int64
	}
	type more struct {
		Y, A, B int64
	}
	dir := t.TempDir()
	csv := reader.Schema{Format: reader.FormatCSV, Header: true}
	for name, in := range map[string]struct {
		schema reader.Schema
		files  []string
		wide   string
	}{
		"csv":     {csv, []string{write(t, dir, "1.csv", []byte("Y,A\n1,2\n")), write(t, dir, "2.csv", []byte("Y,A,B\n3,4,5\n"))}, "2.csv"},
		"parquet": {reader.Schema{Format: reader.FormatParquet}, []string{writeParquet(t, []few{{1, 2}}), writeParquet(t, []more{{3, 4, 5}})}, "in.parquet"},
	} {
		out := filepath.Join(dir, name+".csv")
		o := Options{From: testOptions(in.schema, in.files...), Format: reader.FormatCSV, Header: true, To: []string{out}}
		_, err := Run(context.Background(), o)
		if input := (*reader.InputError)(nil); !errors.As(err, &input) || !strings.Contains(err.Error(), in.wide+`: column "B" is not in the preceding files`) {
			t.Errorf("%s: the error is %v, want one about column B", name, err)
		}
		o.Columns = namedColumns("A", "Y")
		if _, err := Run(context.Background(), o); err != nil || content(t, out) != "A,Y\n2,1\n4,3\n" {
			t.Errorf("%s: columns that are named give %v", name, err)
		}
		o.Columns = nil
		o.From = testOptions(csv, write(t, dir, "rows.csv", []byte("A,C\n2,x\n")))
		o.Joins = []Join{{Table: testOptions(in.schema, in.files...), On: "A"}}
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), `column "B" is not in the preceding files`) {
			t.Errorf("%s as a side table: the error is %v, want one about column B", name, err)
		}
		o.Joins[0].Add = []string{"Y"}
		if _, err := Run(context.Background(), o); err != nil || content(t, out) != "A,C,Y\n2,x,1\n" {
			t.Errorf("%s as a side table: a column that is named gives %v", name, err)
		}
	}
}
