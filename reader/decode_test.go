package reader

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"aibox/reader/internal/faults"
	"aibox/reader/rowschema"
)

// k writes a key as examples does.
func k(space, value string) string { return fmt.Sprintf("%016x", Key(space, []byte(value))) }

// adSchema is a small CSV schema.
func adSchema() Schema {
	return Schema{Format: FormatCSV, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "x", Role: RoleDense, Missing: 7}, {Name: "c", Role: RoleSparse},
		{Name: "tags", Role: RoleSparse, Separator: "|"},
	}}
}

func TestDecode(t *testing.T) {
	criteo := rowschema.CriteoSchema()
	small := Schema{Format: FormatCriteo, Columns: []Column{criteo.Columns[0], criteo.Columns[1], criteo.Columns[14]}}
	header := adSchema()
	header.Header = true
	svm := Schema{Format: FormatLibSVM}
	ranges := Schema{Format: FormatLibSVM, Columns: []Column{
		{Name: "user", Role: RoleSparse, Space: "id", IndexRange: [2]int64{100, 199}, HasIndexRange: true},
		{Name: "age", Role: RoleDense, Missing: -1, IndexRange: [2]int64{5, 5}, HasIndexRange: true},
		{Name: "friends", Role: RoleSparse, Space: "id", IndexRange: [2]int64{200, 299}, HasIndexRange: true},
		{Name: "hour", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{6, 18}}}, IndexRange: [2]int64{6, 6}, HasIndexRange: true},
	}}
	ffm := Schema{Format: FormatLibFFM, Columns: []Column{
		{Name: "b", Role: RoleSparse, FieldNumber: 1, HasFieldNumber: true},
		{Name: "a", Role: RoleSparse, FieldNumber: 0, HasFieldNumber: true},
		{Name: "x", Role: RoleDense, FieldNumber: 7, HasFieldNumber: true},
	}}
	threshold := adSchema()
	threshold.Label = LabelRule{Column: "x", Op: ">=", Value: 4}
	weighted := Schema{Format: FormatTSV, Columns: []Column{
		{Name: "w", Role: RoleWeight}, {Name: "y", Role: RoleLabel},
		{Name: "i", Role: RoleSparse, Separator: "||", WeightSeparator: "=>"}, {Name: "j", Role: RoleSparse, Space: "i"},
	}}
	for name, c := range map[string]struct {
		schema Schema
		text   string
		want   []string
	}{
		"criteo": {small, "1\t3\tab\n0\t\t\n0\t-2\t\"\n", []string{
			fmt.Sprintf("1 [%v] [ %s ]", float32(math.Log(4)), k("C1", "ab")), "0 [0] [ ]",
			fmt.Sprintf("0 [%v] [ %s ]", float32(-math.Log(3)), k("C1", "\"")),
		}},
		"csv": {adSchema(), "1,2.5,a,p|q\n0,,,\n", []string{
			"1 [2.5] [ " + k("c", "a") + " ] [ " + k("tags", "p") + " " + k("tags", "q") + " ]", "0 [7] [ ] [ ]",
		}},
		"quotes, CRLF, BOM, empty lines, no last line end": {adSchema(), "\ufeff1,1,\"a, \"\"b\"\"\",p\r\n\r\n\n0, 2 ,\"\",||q|", []string{
			"1 [1] [ " + k("c", `a, "b"`) + " ] [ " + k("tags", "p") + " ]", "0 [2] [ ] [ " + k("tags", "q") + " ]",
		}},
		"header in another order": {header, "\ufeffextra,tags,\"x\", c ,y\n,p,1,\" a\",1\n", []string{
			"1 [1] [ " + k("c", " a") + " ] [ " + k("tags", "p") + " ]",
		}},
		"labels as Python and SQL write them": {adSchema(), "True,1,,\n FALSE,1,,\ntrue ,1,,\n1.0,1,,\n", []string{
			"1 [1] [ ] [ ]", "0 [1] [ ] [ ]", "1 [1] [ ] [ ]", "1 [1] [ ] [ ]",
		}},
		"threshold on a dense column": {threshold, "1,4,,\n1,3.9,,\n", []string{"1 [4] [ ] [ ]", "0 [3.9] [ ] [ ]"}},
		"weights": {weighted, "2\t1\ta=>0.5||b||c=>x=>2\td\n\t0\t\t\n", []string{
			"1 w2 [] [ " + k("i", "a") + "*0.5 " + k("i", "b") + "*1 " + k("i", "c=>x") + "*2 ] [ " + k("i", "d") + "*1 ]", "0 w1 [] [ ] [ ]",
		}},
		"libsvm": {svm, "# first\n+1 3:1 07:0.5 # comment 9:1\n-1\n \t# \xff\r\n0 12:1\n#\n", []string{
			"1 [] [ " + k("features", "3") + "*1 " + k("features", "7") + "*0.5 ]", "0 [] [ ]", "0 [] [ " + k("features", "12") + "*1 ]",
		}},
		"libsvm with ranges": {ranges, "1 201:2 5:30 101:1 203:1 6:12 999:4\n0\n", []string{
			"1 [30] [ " + k("id", "1") + "*1 ] [ " + k("id", "1") + "*2 " + k("id", "3") + "*1 ] [ " + k("hour", "1") + "*1 ]",
			"0 [-1] [ ] [ ] [ ]",
		}},
		"libffm": {ffm, "1 0:7:1 1:8:2 0:9:1 7:1:-3 4:4:4\n", []string{
			"1 [-3] [ " + k("b", "8") + "*2 ] [ " + k("a", "7") + "*1 " + k("a", "9") + "*1 ]",
		}},
	} {
		o := testOptions(c.schema, write(t, t.TempDir(), "data", []byte(c.text)))
		o.MaxBadRows, o.MaxBadFraction, o.BatchSize = 0, 0, 10
		passes, _, err := readAll(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(described(passes), "\n"); got != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, strings.Join(c.want, "\n"))
		}
	}
}

func TestBadRows(t *testing.T) {
	weight := adSchema()
	weight.Columns = append(weight.Columns, Column{Name: "w", Role: RoleWeight})
	bag := adSchema()
	bag.Columns[3].WeightSeparator = ":"
	svm := Schema{Format: FormatLibSVM}
	ffm := Schema{Format: FormatLibFFM, Columns: []Column{{Name: "a", Role: RoleSparse, HasFieldNumber: true}}}
	dense := Schema{Format: FormatLibSVM, Columns: []Column{{Name: "x", Role: RoleDense, HasIndexRange: true, IndexRange: [2]int64{1, 1}}}}
	clip := adSchema()
	clip.Columns[1].Transforms = []rowschema.Transform{{Kind: rowschema.TransformClip, Min: 0, Max: 1}}
	for _, c := range []struct {
		schema Schema
		row    string
		reason faults.Reason
		detail string
	}{
		{adSchema(), "1,2", faults.ReasonColumns, "2 cells where 4 are expected"},
		{adSchema(), "1,2,a,b,c", faults.ReasonColumns, "5 cells"},
		{adSchema(), "1,two,a,b", faults.ReasonNumber, `column x: "two"`},
		{adSchema(), "1,1e99,a,b", faults.ReasonNumber, `column x: "1e99"`},
		{adSchema(), "1,NaN,a,b", faults.ReasonNotFinite, `column x`},
		{clip, "1,inf,a,b", faults.ReasonNotFinite, `column x`},
		{adSchema(), "2,1,a,b", faults.ReasonLabel, `column y: "2"`},
		{adSchema(), "0.5,1,a,b", faults.ReasonLabel, "column y"},
		{adSchema(), "-1,1,a,b", faults.ReasonLabel, "column y"},
		{adSchema(), "yes,1,a,b", faults.ReasonNumber, "column y"},
		{adSchema(), ",1,a,b", faults.ReasonNoLabel, "column y"},
		{adSchema(), "1,1,\xff\xfe,b", faults.ReasonUTF8, "column c: byte 5 of the row is 0xff"},
		{adSchema(), "1,\"2\",\"\u00e9, \xc3\",b", faults.ReasonUTF8, "column c: byte 12 of the row is 0xc3"},
		{adSchema(), "1,1,a,b,\xff", faults.ReasonColumns, "5 cells"},
		{svm, "1 3:1 \xff # x", faults.ReasonUTF8, "byte 7 of the row is 0xff"},
		{adSchema(), "1,1_000,a,b", faults.ReasonNumber, `column x: "1_000"`},
		{adSchema(), "1,0x1p4,a,b", faults.ReasonNumber, `column x: "0x1p4"`},
		{weight, "1,1,a,b,1_0", faults.ReasonWeight, "column w"},
		{svm, "1 3:1_000", faults.ReasonFeature, "3:1_000"},
		{adSchema(), "1,1,\"a,b", faults.ReasonQuote, ""},
		{adSchema(), "1,1,\"a\"x,b", faults.ReasonQuote, ""},
		{adSchema(), strings.Repeat("x", 101), faults.ReasonTooLong, ""},
		{weight, "1,1,a,b,-1", faults.ReasonWeight, "column w"},
		{weight, "1,1,a,b,nan", faults.ReasonWeight, "column w"},
		{bag, "1,1,a,b:heavy", faults.ReasonFeature, `column tags: "b:heavy"`},
		{svm, "1 x:1", faults.ReasonFeature, "x:1"},
		{svm, "1 3", faults.ReasonFeature, "3"},
		{svm, "1 3:", faults.ReasonFeature, "3:"},
		{svm, "1 -3:1", faults.ReasonFeature, "-3:1"},
		{svm, "1 3:inf", faults.ReasonNotFinite, "3:inf"},
		{svm, "3:1", faults.ReasonNoLabel, ""},
		{svm, "2 3:1", faults.ReasonLabel, ""},
		{dense, "1 1:1 1:2", faults.ReasonFeature, "column x"},
		{ffm, "1 3:1", faults.ReasonFeature, "3:1"},
	} {
		good := "1,1,a,b\n"
		switch {
		case c.schema.Format.Indexed():
			good = "1\n"
		case len(c.schema.Columns) == 5:
			good = "1,1,a,b,1\n"
		}
		var bad strings.Builder
		o := testOptions(c.schema, write(t, t.TempDir(), "data", []byte(good+c.row+"\n"+good)))
		o.MaxLineBytes, o.Quarantine, o.QuarantineRows = 100, &bad, 5
		passes, counts := mustRead(t, o)
		if counts.Rows != 3 || counts.Examples != 2 || counts.BadRows != 1 || len(described(passes)) != 2 {
			t.Errorf("%q: %+v", c.row, counts)
			continue
		}
		got := counts.Bad[0].Example
		if got.Reason != c.reason || !strings.Contains(got.Detail, c.detail) || got.Line != 2 || got.Offset != int64(len(good)) {
			t.Errorf("%q: %v, want %v: %s", c.row, got, c.reason, c.detail)
		}
		if want := base64.StdEncoding.EncodeToString([]byte(c.row)); got.RowBase64 != want && !utf8.ValidString(c.row) ||
			got.RowBase64 != "" && utf8.ValidString(c.row) {
			t.Errorf("%q: the bytes of the row are kept as %q", c.row, got.RowBase64)
		}
		if got.Row != strings.ToValidUTF8(c.row[:min(len(c.row), 100)], "\uFFFD") {
			t.Errorf("%q: the row is kept as %q", c.row, got.Row)
		}
		if !strings.Contains(bad.String(), `"reason":"`+c.reason.String()) || strings.Count(bad.String(), "\n") != 1 {
			t.Errorf("%q: the quarantine is %q", c.row, bad.String())
		}
	}
}

func TestUnlabelled(t *testing.T) {
	criteo := rowschema.CriteoSchema()
	small := Schema{Format: FormatCriteo, Columns: []Column{criteo.Columns[0], criteo.Columns[1], criteo.Columns[14]}}
	header := adSchema()
	header.Header = true
	for _, c := range []struct {
		schema Schema
		text   string
	}{
		{small, "1\ta\n1\ta\n"},
		{small, "\t1\ta\n\t1\ta\n"},
		{header, "x,c,tags\n1,a,b\n1,a,b\n"},
		{Schema{Format: FormatLibSVM}, "3:1\n4:1\n"},
	} {
		path := write(t, t.TempDir(), "data", []byte(c.text))
		o := testOptions(c.schema, path)
		o.KeepUnlabelled, o.MaxBadRows = true, 0
		o.PassThrough = []string{c.schema.LabelColumn()}
		passes, counts := mustRead(t, o)
		if counts.Examples != 2 || counts.Positives != 0 {
			t.Errorf("%v: %+v", c.schema.Format, counts)
		}
		b := &passes[0].Batches[0]
		if !math.IsNaN(float64(b.Labels[0])) || !math.IsNaN(float64(b.Labels[1])) || b.Columns[0][0] != "" {
			t.Errorf("%v: labels %v, text %q", c.schema.Format, b.Labels, b.Columns)
		}
		o.KeepUnlabelled = false
		if _, counts, err := readAll(o); err == nil {
			t.Errorf("%v: no error without KeepUnlabelled: %+v", c.schema.Format, counts)
		}
	}
}

// TestLabelsOfAFile checks that a row that lacks a cell is bad if the file has labels, so that its
// cells are not shifted by the label.
func TestLabelsOfAFile(t *testing.T) {
	criteo := rowschema.CriteoSchema()
	schema := Schema{Format: FormatCriteo, Columns: []Column{criteo.Columns[0], criteo.Columns[1], criteo.Columns[14]}}
	dir := t.TempDir()
	labelled := write(t, dir, "labelled", []byte("\n1\t5\ta\n0\t7\n0\t6\tb\n"))
	unlabelled := write(t, dir, "unlabelled", []byte("\xef\xbb\xbf5\ta\n1\t7\tb\n6\tb\n"))
	o := testOptions(schema, labelled, unlabelled)
	o.KeepUnlabelled, o.MaxBadRows = true, 2
	passes, counts := mustRead(t, o)
	got := described(passes)
	if counts.BadRows != 2 || counts.Bad[0].Reason != faults.ReasonColumns || len(got) != 4 {
		t.Fatalf("%+v\n%s", counts, strings.Join(got, "\n"))
	}
	for i, want := range []string{"1 [1.79", "0 [1.94", "NaN [1.79", "NaN [1.94"} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("example %d is %s, want %s", i, got[i], want)
		}
	}
}
