package reader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/internal/rowwriter"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// rowsWithBad makes n rows of adSchema of which each is bad where bad says so.
func rowsWithBad(n int, bad func(i int) bool) []byte {
	var b bytes.Buffer
	for i := range n {
		if bad(i) {
			b.WriteString("1,x,a,b\n")
		} else {
			fmt.Fprintf(&b, "%d,1,a,b\n", i%2)
		}
	}
	return b.Bytes()
}

func TestBadRowLimits(t *testing.T) {
	every := func(k int) func(int) bool { return func(i int) bool { return i%k == k-1 } }
	for _, c := range []struct {
		name        string
		rows        int
		bad         func(int) bool
		maxRows     int64
		maxFraction float64
		wantRows    int64 // of the error at the latest; 0: no error
		earliest    int64 // of the error, where reading may end before wantRows
	}{
		{"none allowed", 50, every(10), 0, -1, 10, 10},
		{"exactly as many as allowed", 50, every(10), 5, -1, 0, 0},
		{"one more than allowed", 60, every(10), 5, -1, 60, 60},
		{"share at the end", 50, every(10), -1, 0.05, 50, 30},
		{"share at the end, by one row", 1999, func(i int) bool { return i < 20 }, -1, 0.01, 1999, 1999},
		{"share is reached", 50, every(10), -1, 0.1, 0, 0},
		{"share exceeded early", 5000, every(10), -1, 0.05, 5000, 3000},
		{"all rows are bad", 5000, every(1), -1, 0.01, 5000, 50},
		{"two bad rows at the beginning", 5000, func(i int) bool { return i == 700 || i == 1401 }, -1, 0.001, 0, 0},
		{"a burst", 20_000, func(i int) bool { return i >= 900 && i < 990 }, -1, 0.005, 0, 0},
		{"a bad beginning is forgiven", 5000, func(i int) bool { return i < 20 }, -1, 0.05, 0, 0},
		{"no limits", 50, func(i int) bool { return i > 0 }, -1, -1, 0, 0},
	} {
		path := write(t, t.TempDir(), "data", rowsWithBad(c.rows, c.bad))
		for _, chunk := range []int64{300, 1 << 20} {
			o := testOptions(adSchema(), path)
			o.MaxBadRows, o.MaxBadFraction, o.ChunkBytes = c.maxRows, c.maxFraction, chunk
			_, _, err := readAll(o)
			var limit *BadRowsError
			if !errors.As(err, &limit) {
				if c.wantRows != 0 || err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			if limit.Rows > c.wantRows || limit.Rows < c.earliest {
				t.Errorf("%s: %v, want row %d", c.name, limit, c.wantRows)
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `column x: "x"`) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

func TestErrorStays(t *testing.T) {
	o := testOptions(adSchema(), write(t, t.TempDir(), "data", rowsWithBad(9, func(i int) bool { return i == 8 })))
	o.MaxBadRows = 0
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, r) })
	if p, err := r.Next(t.Context()); err != nil || len(p.Batches) != 2 {
		t.Fatal(p, err)
	}
	_, first := r.Next(t.Context())
	if _, second := r.Next(t.Context()); first == nil || first != second {
		t.Errorf("%v, then %v", first, second)
	}
}

func TestNoExamples(t *testing.T) {
	dir := t.TempDir()
	header := adSchema()
	header.Header = true
	for name, o := range map[string]Options{
		"no URI":        testOptions(adSchema()),
		"empty file":    testOptions(adSchema(), write(t, dir, "empty", nil)),
		"empty lines":   testOptions(adSchema(), write(t, dir, "lines", []byte("\n\r\n\n"))),
		"only a header": testOptions(header, write(t, dir, "header", []byte("y,x,c,tags"))),
		"only bad rows": testOptions(adSchema(), write(t, dir, "bad", []byte("1\n2\n"))),
	} {
		if _, _, err := readAll(o); !errors.Is(err, ErrNoExamples) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Scan(t.Context(), o); !errors.Is(err, ErrNoExamples) {
			t.Errorf("%s: Scan: %v", name, err)
		}
	}
}

func TestOpenNamesTheFault(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "data.csv", []byte("y,x,c,tags,tags,c2,extra\n1,1,a,b,b,,\n"))
	with := func(change func(o *Options)) Options {
		s := adSchema()
		s.Header = true
		o := testOptions(s, data)
		change(&o)
		return o
	}
	for want, o := range map[string]Options{
		"not found":                      with(func(o *Options) { o.URIs = []string{dir + "/none"} }),
		`names column "tags" twice`:      with(func(*Options) {}),
		`has no column "z"`:              with(func(o *Options) { o.Schema.Columns[3].Name = "z" }),
		`no column "user"`:               with(func(o *Options) { o.Schema.Columns[3].Name = "c2"; o.GroupBy = "user" }),
		`no column "note"`:               with(func(o *Options) { o.Schema.Columns[3].Name = "extra"; o.PassThrough = []string{"note"} }),
		"occurs twice":                   with(func(o *Options) { o.Schema.Columns[3].Name = "c" }),
		"neither a column of role label": with(func(o *Options) { o.Schema.Columns[0].Role = RoleIgnore }),
		"unknown comparison":             with(func(o *Options) { o.Schema.Label = LabelRule{Column: "y", Op: "~"} }),
		"batch size":                     with(func(o *Options) { o.BatchSize = 0 }),
		"unknown compression":            with(func(o *Options) { o.Compression = "rar" }),
		"run Scan": with(func(o *Options) {
			o.Schema.Columns[1].Transforms = []rowschema.Transform{{Kind: rowschema.TransformStandardize}}
		}),
		"must be the last": with(func(o *Options) {
			o.Schema.Columns[1].Transforms = []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{1}}, {}}
		}),
		"must ascend": with(func(o *Options) {
			o.Schema.Columns[1].Transforms = []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{1, 1}}}
		}),
		"nothing to learn from":           testOptions(Schema{Format: FormatCSV, Columns: []Column{{Name: "y", Role: RoleLabel}}}, data),
		"needs the column's field number": testOptions(Schema{Format: FormatLibFFM, Columns: []Column{{Name: "a", Role: RoleSparse}}}, data),
		"claim the same features": testOptions(Schema{Format: FormatLibSVM, Columns: []Column{
			{Name: "a", Role: RoleSparse, HasIndexRange: true, IndexRange: [2]int64{1, 5}},
			{Name: "b", Role: RoleSparse, HasIndexRange: true, IndexRange: [2]int64{5, 9}}}}, data),
		"only be grouped by": func() Options {
			o := testOptions(Schema{Format: FormatLibSVM}, data)
			o.GroupBy = rowschema.LibSVMColumn
			return o
		}(),
		data: testOptions(Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "x", Role: RoleDense}}}, data),
	} {
		r, err := Open(t.Context(), o)
		if err == nil {
			mustClose(t, r)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestQuarantineIsJSON(t *testing.T) {
	var garbage bytes.Buffer
	garbage.WriteString("1,1,a,b\n")
	for i := range uint64(2000) {
		garbage.WriteByte(byte(hashes.Random(1, 1, 1, i)))
	}
	var bad bytes.Buffer
	o := testOptions(adSchema(), write(t, t.TempDir(), "data", garbage.Bytes()))
	o.Quarantine, o.QuarantineRows = &bad, 3
	mustRead(t, o)
	lines := strings.Split(strings.TrimSpace(bad.String()), "\n")
	if len(lines) != 3 {
		t.Errorf("%d rows in quarantine, want 3", len(lines))
	}
	for _, line := range lines {
		var row BadRow
		if err := json.Unmarshal([]byte(line), &row); err != nil || !utf8.ValidString(line) || row.Reason == faults.None || row.Line < 2 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// zeros yields a line of n zero bytes and then one good row.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return copy(p, "\n1,1,a,b\n"), io.EOF
	}
	n := int(min(int64(len(p)), z.n))
	clear(p[:n])
	z.n -= int64(n)
	return n, nil
}

func TestHugeLineTakesLittleMemory(t *testing.T) {
	var packed bytes.Buffer
	w, err := rowwriter.Compress(source.Zstd, &packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, &zeros{100 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(adSchema(), write(t, t.TempDir(), "data.zst", packed.Bytes()))
	o.ChunkBytes, o.MaxLineBytes = 1<<16, 1<<17
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, counts := mustRead(t, o)
	runtime.ReadMemStats(&after)
	if counts.Examples != 1 || counts.BadRows != 1 || counts.Bad[0].Reason != faults.ReasonTooLong {
		t.Fatalf("%+v", counts)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 20<<20 {
		t.Errorf("%d bytes were allocated for a line of 100 MiB", got)
	}
}

// TestWindowTooLargeIsNoBadRow reads a zstd file whose window is above the limit: a
// fault of the whole file, which no limit on bad rows lets pass.
func TestWindowTooLargeIsNoBadRow(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1<<3 | 1, 0, 0, '\n'} // 2 GiB; see source.TestDecompressZstdWindow
	o := testOptions(adSchema(), write(t, t.TempDir(), "data.zst", frame))
	_, counts, err := readAll(o)
	var input *InputError
	if !errors.As(err, &input) || !errors.Is(err, source.ErrUnsupported) || !strings.Contains(err.Error(), "data.zst") || counts.BadRows != 0 {
		t.Errorf("%v, %+v", err, counts)
	}
}
