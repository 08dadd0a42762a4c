package reader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// reading is everything that a reading delivers, as text.
type reading struct {
	passes  []string  // each with the counts after it
	cursors []*Cursor // of each pass, nil at first: the beginning
	bad     []byte    // the quarantine
	end     string    // what ended it, and the last counts
}

// readFrom reads the input from a cursor on. bad is what is in the quarantine so far.
func readFrom(t testing.TB, o Options, start *Cursor, bad []byte) *reading {
	t.Helper()
	quarantine := bytes.NewBuffer(bytes.Clone(bad))
	o.Quarantine, o.Start = quarantine, start
	got := &reading{cursors: []*Cursor{start}}
	r, err := Open(t.Context(), o)
	if err != nil {
		got.end = fmt.Sprint(err)
		return got
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		p, err := r.Next(t.Context())
		if err != nil {
			got.end = fmt.Sprintf("%v %s", err, inJSON(t, r.Counts()))
			got.bad = quarantine.Bytes()
			return got
		}
		got.passes = append(got.passes, fmt.Sprintf("%s%d bytes %s", dumpExported(p), p.Bytes, inJSON(t, r.Counts())))
		got.cursors = append(got.cursors, p.End)
		scramble(p)
		p.Recycle()
	}
}

// inJSON is the value as JSON.
func inJSON(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// stored is the cursor after it was written and read back.
func stored(t testing.TB, c *Cursor) *Cursor {
	t.Helper()
	data := inJSON(t, c)
	back := new(Cursor)
	if err := json.Unmarshal(data, back); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return back
}

// differs compares a reading that starts at cursor i of the whole one with what follows
// there; "" if there is no difference.
func (whole *reading) differs(i int, rest *reading) string {
	for j, want := range whole.passes[i:] {
		if j >= len(rest.passes) {
			return fmt.Sprintf("there are %d passes instead of %d, and then %s", len(rest.passes), len(whole.passes)-i, rest.end)
		}
		if got := rest.passes[j]; got != want {
			return fmt.Sprintf("pass %d is\n%s\nwant\n%s", i+j, got, want)
		}
	}
	switch {
	case len(rest.passes) > len(whole.passes)-i:
		return fmt.Sprintf("there are %d passes instead of %d", len(rest.passes), len(whole.passes)-i)
	case rest.end != whole.end:
		return fmt.Sprintf("the end is\n%s\nwant\n%s", rest.end, whole.end)
	case !bytes.Equal(rest.bad, whole.bad):
		return fmt.Sprintf("the quarantine is\n%s\nwant\n%s", rest.bad, whole.bad)
	}
	return ""
}

// checkCursors reads an input, and again from each cursor on, with other numbers of threads;
// in short tests, from every fourth one.
func checkCursors(t testing.TB, name string, o Options) *reading {
	t.Helper()
	o.Threads = 2
	whole := readFrom(t, o, nil, nil)
	for i, c := range whole.cursors[1:] {
		if c == nil || c.Passes != int64(i+1) {
			t.Fatalf("%s: pass %d ends at %+v", name, i, c)
		}
		if testing.Short() && i%4 != len(name)%4 {
			continue
		}
		c = stored(t, c)
		o.Threads, o.AheadChunks = []int{1, 2, 8}[i%3], []int{0, 1}[i%2]
		rest := readFrom(t, o, c, whole.bad[:c.QuarantineBytes])
		if diff := whole.differs(i+1, rest); diff != "" {
			t.Fatalf("%s: after pass %d with %d threads, from %+v on: %s", name, i, o.Threads, c, diff)
		}
		for j, c := range rest.cursors {
			got, want := *c, *whole.cursors[i+1+j]
			got.Files, want.Files = nil, nil // some were written and read back, which changes the pointers in times
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: a reading that starts after pass %d has the cursor\n%+v after pass %d, want\n%+v", name, i, got, i+j, want)
			}
		}
	}
	return whole
}

// groupRow is a row of parquetGroups.
type groupRow struct {
	Y    int64
	X    float64
	B    string
	Tags []string `parquet:",list"`
}

// parquetGroups is a Parquet file with row groups of these sizes, in which every 13th row
// is bad.
func parquetGroups(t testing.TB, dir, name string, sizes ...int) string {
	t.Helper()
	var data bytes.Buffer
	w := parquet.NewGenericWriter[groupRow](&data, parquet.PageBufferSize(400))
	n := 0
	for _, rows := range sizes {
		for range rows {
			row := groupRow{Y: int64(n % 2), X: float64(n), B: fmt.Sprint("b", n%30), Tags: []string{fmt.Sprint(n % 7), "t"}[:n%3]}
			if n++; n%13 == 0 {
				row.Y = 2
			}
			if _, err := w.Write([]groupRow{row}); err != nil {
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
	return write(t, dir, name, data.Bytes())
}

func groupSchema() Schema {
	return Schema{Format: FormatParquet, Columns: []Column{
		{Name: "Y", Role: RoleLabel}, {Name: "X", Role: RoleDense}, {Name: "B", Role: RoleSparse}, {Name: "Tags", Role: RoleSparse},
	}}
}

// cursorInputs are inputs of every format and compression, with bad rows, long lines,
// losses and empty files.
func cursorInputs(t *testing.T) map[string]Options {
	dir := t.TempDir()
	inputs := map[string]Options{}
	add := func(name string, s Schema, paths ...string) {
		o := testOptions(s, paths...)
		o.BatchSize, o.BatchesPerPass, o.ChunkBytes, o.MaxLineBytes, o.QuarantineRows, o.Seed = 8, 2, 700, 300, 1000, 5
		inputs[name] = o
	}
	empty := write(t, dir, "empty", nil)
	ads := func(from, n int, odd string) []byte {
		var b bytes.Buffer
		for i := from; i < from+n; i++ {
			switch {
			case i%11 == 4:
				b.WriteString(odd + "\n")
			case i%29 == 3:
				b.WriteString("1,,,,,\n\r\n")
			}
			fmt.Fprintf(&b, "%d,%d,a%d,b|c%d\n", i%2, i%7, hashes.Random(1, 1, 1, uint64(i))%50, i%5)
		}
		return b.Bytes()
	}
	hole := bytes.Repeat([]byte("z"), 3000)
	text := bytes.Join([][]byte{ads(0, 40, "1,x,a,b"), hole, []byte("\n"), ads(40, 30, "2,1,a,b"), hole[:700]}, nil)
	other := append(ads(70, 25, "\xff"), "1,1,a"...) // the end is missing
	for _, extension := range []string{"", ".gz", ".zst", ".snappy"} {
		var paths []string
		for i, data := range [][]byte{text, other, ads(95, 30, "1"), hole, ads(125, 9, "")} {
			name := fmt.Sprintf("part-%d%s", i, extension)
			paths = append(paths, write(t, dir, name, packed(t, source.CompressionOf(name), data)), empty)
		}
		add("csv"+extension, adSchema(), paths...)
	}
	lines := packed(t, source.Gzip, ads(0, 90, "1,x,a,b"))
	lines[len(lines)-4]++ // the checksum
	add("damaged files", adSchema(), write(t, dir, "a.gz", lines), write(t, dir, "none.gz", []byte("none")),
		write(t, dir, "b", ads(90, 20, "x")), write(t, dir, "cut.zst", packed(t, source.Zstd, ads(110, 400, "x"))[:1500]), write(t, dir, "c.snappy", packed(t, source.Snappy, ads(0, 30, "y"))))
	mixed := weightedSchema()
	add("header", mixed, write(t, dir, "one.csv", append([]byte("\ufeff"), weightedRows(120)...)), write(t, dir, "none.csv", []byte("y,w,x,a,b,c,g\n")),
		write(t, dir, "nothing.csv", []byte("\n\n")), write(t, dir, "two.csv.gz", packed(t, source.Gzip, weightedRows(40))))
	add("criteo", rowschema.CriteoSchema(), write(t, dir, "day_0", criteoLines(60)), write(t, dir, "day_1.zst", packed(t, source.Zstd, criteoLines(20))))
	svm := strings.Repeat("+1 1:1 7:0.5\n-1 3:2 # x\n# comment\n0 2:x\n", 30)
	add("libsvm", Schema{Format: FormatLibSVM}, write(t, dir, "svm", []byte(svm)), write(t, dir, "svm.bz2.snappy", packed(t, source.Snappy, []byte(svm))))
	add("libffm", Schema{Format: FormatLibFFM, Columns: []Column{
		{Name: "a", Role: RoleSparse, HasFieldNumber: true}, {Name: "x", Role: RoleDense, FieldNumber: 2, HasFieldNumber: true},
	}}, write(t, dir, "ffm", []byte(strings.Repeat("1 0:7:1 2:1:-3\n0 0:1:2:3\n0 0:8:1\n", 40))))
	add("parquet", groupSchema(), parquetGroups(t, dir, "a.parquet", 30, 1, 50), parquetGroups(t, dir, "none.parquet"), parquetGroups(t, dir, "b.parquet", 40))
	add("large row groups", groupSchema(), parquetGroups(t, dir, "c.parquet", 4000, 3000))
	add("damaged parquet", Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}},
		damagedRows(t), write(t, dir, "footer.parquet", []byte("PAR1 no footer ....PAR2")))
	return inputs
}

// cursorChanges are ways to read an input.
var cursorChanges = map[string]func(o *Options){
	"in order":              func(*Options) {},
	"in large chunks":       func(o *Options) { o.ChunkBytes, o.BatchesPerPass = 1<<20, 3 },
	"in tiny chunks":        func(o *Options) { o.ChunkBytes, o.BatchSize = 13, 9 },
	"small windows":         func(o *Options) { o.ShuffleBuffer, o.BatchSize = 5, 7 },
	"windows":               func(o *Options) { o.ShuffleBuffer, o.Epoch = 45, 3 },
	"windows of passes":     func(o *Options) { o.ShuffleBuffer = 16 },
	"one window":            func(o *Options) { o.ShuffleBuffer = 10_000 },
	"sampled":               func(o *Options) { o.NegativeSampling, o.ChunkBytes = 0.4, 200 },
	"sampled windows":       func(o *Options) { o.NegativeSampling, o.ShuffleBuffer, o.Limit = 0.3, 20, 50 },
	"limited":               func(o *Options) { o.Limit = 48 }, // three passes
	"limited windows":       func(o *Options) { o.Limit, o.ShuffleBuffer = 45, 10 },
	"with bad rows":         func(o *Options) { o.KeepBadRows, o.ShuffleBuffer = true, 10 },
	"sampled with bad rows": func(o *Options) { o.KeepBadRows, o.NegativeSampling = true, 0.5 },
	"few bad rows":          func(o *Options) { o.MaxBadRows, o.QuarantineRows = 6, 3 },
	"small share of bad":    func(o *Options) { o.MaxBadFraction, o.ChunkBytes = 0.05, 150 },
	"larger share of bad":   func(o *Options) { o.MaxBadFraction, o.QuarantineRows = 0.15, 8 },
	"few losses":            func(o *Options) { o.MaxLostFraction = 0.12 },
	"some losses":           func(o *Options) { o.MaxLostFraction = 0.7 },
	"one pass after all":    func(o *Options) { o.BatchesPerPass, o.QuarantineRows = 1000, 0 },
}

// TestCursors reads inputs of all kinds in all ways, and from every cursor on.
func TestCursors(t *testing.T) {
	ends := map[string]int{}
	for input, base := range cursorInputs(t) {
		for change, do := range cursorChanges {
			o := base
			do(&o)
			if input == "large row groups" {
				o.BatchSize = 700
			}
			if o.Schema.Format == FormatCriteo {
				o.MaxLineBytes = 1000
			}
			whole := checkCursors(t, input+", "+change, o)
			if len(whole.passes) == 0 && o.MaxBadRows < 0 && o.MaxBadFraction < 0 && o.MaxLostFraction < 0 {
				t.Errorf("%s, %s: no pass: %s", input, change, whole.end)
			}
			switch {
			case strings.HasPrefix(whole.end, "EOF"):
				ends["the end"]++
			case strings.Contains(whole.end, "max_bad_rows"):
				ends["too many bad rows"]++
			case strings.Contains(whole.end, "even if the rest"):
				ends["too many bad rows, early"]++
			case strings.Contains(whole.end, "max_bad_fraction"):
				ends["too many bad rows at the end"]++
			case strings.Contains(whole.end, "max_lost_fraction"):
				ends["too large a loss"]++
			default:
				t.Errorf("%s, %s: %s", input, change, whole.end)
			}
		}
	}
	if len(ends) != 5 {
		t.Errorf("the readings end in these ways: %v", ends)
	}
}

// TestEveryFieldOfACursorMatters leaves out one field of the cursors after the other: a
// reading then fails, or delivers something else, at least once.
func TestEveryFieldOfACursorMatters(t *testing.T) {
	matters := map[string]bool{ // these do not
		"counts.bytes_total": true, // it follows from the files
		"files[].mod_time":   true, // where it is not known, it is not compared
		"long_lines.text":    true, // the units that follow tell it
		"long_lines.lost":    true, // only compressed files use it, of which it is the last unit
	}
	try := func(o Options, whole *reading, i int) {
		var tree map[string]any
		if err := json.Unmarshal(inJSON(t, whole.cursors[i]), &tree); err != nil {
			t.Fatal(err)
		}
		eachField("", tree, func(field string) {
			if matters[field] {
				return
			}
			c := new(Cursor)
			if err := json.Unmarshal(inJSON(t, tree), c); err != nil {
				matters[field] = true
				return
			}
			rest := readFrom(t, o, c, whole.bad[:c.QuarantineBytes])
			matters[field] = whole.differs(i, rest) != ""
		})
	}
	inputs := cursorInputs(t)
	for _, input := range []string{"csv", "csv.gz", "damaged files", "parquet", "damaged parquet"} {
		for _, change := range []string{"in order", "in tiny chunks", "sampled windows", "larger share of bad", "small share of bad", "some losses"} {
			o := inputs[input]
			cursorChanges[change](&o)
			whole := readFrom(t, o, nil, nil)
			for i := 1; i < len(whole.cursors); i += 2 {
				try(o, whole, i)
			}
		}
	}
	for field, does := range matters {
		if !does {
			t.Errorf("field %s can be left out of a cursor", field)
		}
	}
}

// eachField removes each field of a value that was read from JSON, calls do, and puts it
// back.
func eachField(path string, value any, do func(field string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			at := strings.TrimPrefix(path+"."+name, ".")
			delete(value, name)
			do(at)
			value[name] = field
			eachField(at, field, do)
		}
	case []any:
		for _, element := range value {
			eachField(path+"[]", element, do)
		}
	}
}
